package modelserver

import (
	"encoding/json"
	"net/http"
	"strings"
)

// completionRequest is the part of a text call that this server reads.
type completionRequest struct {
	generation
	Prompt prompts `json:"prompt"`
}

// completionChoice is a whole answer, or one chunk's part of it.
type completionChoice struct {
	Index        int       `json:"index"`
	Text         string    `json:"text"`
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

// completions answers POST /v1/completions, one choice a prompt.
func (s *Server) completions(w http.ResponseWriter, r *http.Request, c call) error {
	var req completionRequest
	if err := s.admit(r, c, &req); err != nil {
		return err
	}
	if err := s.checkModel(req.Model); err != nil {
		return err
	}
	if len(req.Prompt) == 0 {
		return invalid("prompt", "you must provide a prompt")
	}
	if err := req.check(); err != nil {
		return err
	}
	promptTokens := 0
	for _, p := range req.Prompt {
		promptTokens += p.tokens
	}
	list, latency := s.draw(req.generation, c, len(req.Prompt))
	if req.Stream {
		s.streamCompletions(w, r, streamed{req.generation, c, list, latency, count(promptTokens, list)})
		return nil
	}
	if !pause(r.Context(), latency) {
		return nil // the client is gone; nobody reads an answer
	}
	choices := make([]completionChoice, len(list))
	for i, ch := range list {
		choices[i] = completionChoice{Index: i, Text: strings.Join(ch.tokens, ""), FinishReason: &ch.finish}
	}
	body := s.envelope("cmpl", "text_completion", req.Model, c).counted(count(promptTokens, list))
	writeJSON(w, http.StatusOK, body.with(choices))
	return nil
}

// streamCompletions sends the choices one after the other, each token by token
// with the finish reason in a chunk of its own.
func (s *Server) streamCompletions(w http.ResponseWriter, r *http.Request, a streamed) {
	frame := s.envelope("cmpl", "text_completion", a.Model, a.call)
	if a.wantsUsage() {
		frame.Usage = json.RawMessage("null")
	}
	out := openStream(w)
	p := newPace(a.latency, a.usage.CompletionTokens)
	for _, ch := range a.choices {
		for _, token := range ch.tokens {
			if !p.next(r.Context()) || !out.send(frame.with([]completionChoice{{Index: ch.index, Text: token}})) {
				return
			}
		}
		if !out.send(frame.with([]completionChoice{{Index: ch.index, FinishReason: &ch.finish}})) {
			return
		}
	}
	if a.wantsUsage() && !out.send(frame.with([]completionChoice{}).counted(a.usage)) {
		return
	}
	out.done()
}
