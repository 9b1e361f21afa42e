package modelserver

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"

	"github.com/cespare/xxhash/v2"
)

// The length of a vector: by default, and at most.
const (
	defaultDimensions = 8
	maxDimensions     = 4096
)

// embeddingRequest is the part of an embedding call that this server reads.
type embeddingRequest struct {
	Model          string  `json:"model"`
	Input          prompts `json:"input"`
	Dimensions     *int    `json:"dimensions"`
	EncodingFormat string  `json:"encoding_format"` // float (default) or base64
}

// embedding is one vector: numbers, or base64 of little-endian float32.
type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"`
}

// embeddings answers POST /v1/embeddings: the same text gets the same unit vector
// from every server with the same seed and model.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request, c call) error {
	var req embeddingRequest
	if err := s.admit(r, c, &req); err != nil {
		return err
	}
	if err := s.checkModel(req.Model); err != nil {
		return err
	}
	dims, err := req.check()
	if err != nil {
		return err
	}
	data, tokens := make([]embedding, len(req.Input)), 0
	for i, p := range req.Input {
		tokens += p.tokens
		data[i] = embedding{Object: "embedding", Index: i, Embedding: encode(s.vector(req.Model, p.text, dims), req.EncodingFormat)}
	}
	if !pause(r.Context(), s.cfg.Latency.Sample(c.rand)) {
		return nil // the client is gone; nobody reads an answer
	}
	writeJSON(w, http.StatusOK, struct {
		Object string         `json:"object"`
		Data   []embedding    `json:"data"`
		Model  string         `json:"model"`
		Usage  map[string]int `json:"usage"`
	}{"list", data, req.Model, map[string]int{"prompt_tokens": tokens, "total_tokens": tokens}})
	return nil
}

// check refuses what cannot be embedded and returns the vector length.
func (q embeddingRequest) check() (int, error) {
	if len(q.Input) == 0 {
		return 0, invalid("input", "you must provide an input")
	}
	switch q.EncodingFormat {
	case "", "float", "base64":
	default:
		return 0, invalid("encoding_format", fmt.Sprintf("encoding_format %q is neither float nor base64", q.EncodingFormat))
	}
	if q.Dimensions == nil {
		return defaultDimensions, nil
	}
	if *q.Dimensions < 1 || *q.Dimensions > maxDimensions {
		return 0, invalid("dimensions", fmt.Sprintf("dimensions must be 1 to %d, got %d", maxDimensions, *q.Dimensions))
	}
	return *q.Dimensions, nil
}

// vector draws a unit vector from the text.
func (s *Server) vector(model, text string, dims int) []float32 {
	r := rand.New(rand.NewPCG(s.cfg.Seed^xxhash.Sum64String(model), xxhash.Sum64String(text)))
	raw, norm := make([]float64, dims), 0.0
	for i := range raw {
		raw[i] = r.NormFloat64()
		norm += raw[i] * raw[i]
	}
	v := make([]float32, dims)
	for i := range raw {
		v[i] = float32(raw[i] / math.Sqrt(norm))
	}
	return v
}

// encode puts the vector into the asked form.
func encode(v []float32, format string) any {
	if format != "base64" {
		return v
	}
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
