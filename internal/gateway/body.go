package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// readBody reads the whole body. It returns a *refusalError for one over the
// limit, beyond what may be held in all, malformed or from a client that is too slow,
// and any other error when the client left.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) (*body, error) {
	b := &body{budget: &g.budget}
	if r.ContentLength > g.config.MaxBody {
		return b, g.tooLarge()
	}
	if !b.borrow(nextSize(0, r.ContentLength, g.config.MaxBody)) {
		return b, errOverloaded
	}
	patience := g.patience(w)
	for {
		patience.renew(len(b.bytes))
		if len(b.bytes) == cap(b.bytes) && !b.grow(nextSize(cap(b.bytes), r.ContentLength, g.config.MaxBody)) {
			return b, errOverloaded
		}
		n, err := r.Body.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case int64(len(b.bytes)) > g.config.MaxBody:
			return b, g.tooLarge()
		case errors.Is(err, io.EOF):
			patience.end()
			return b, nil
		case err != nil:
			w.Header().Set("Connection", "close") // where the next request begins is not known
			return b, bodyError(err)
		}
	}
}

// bodyError says what kept a body from being read. A client that left is told from one
// that sends malformed chunks or ends too early, which may still listen.
func bodyError(err error) error {
	var lost *net.OpError
	switch {
	case isTimeout(err):
		return invalid(http.StatusRequestTimeout, "request_timeout", "", "The body did not arrive in time.")
	case errors.As(err, &lost):
		return err
	default:
		return invalid(http.StatusBadRequest, "malformed_body", "", "The body is not framed as HTTP demands.")
	}
}

// errOverloaded refuses a body for which there is no room now.
var errOverloaded = &refusalError{http.StatusServiceUnavailable, apiError{
	Message: "The gateway holds too many bytes of other requests; try again in a moment.", Type: typeServer, Code: "overloaded",
}}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func (g *Gateway) tooLarge() *refusalError {
	return invalid(http.StatusRequestEntityTooLarge, "request_too_large", "",
		fmt.Sprintf("The body is larger than %d bytes.", g.config.MaxBody))
}

// call is what routing needs of a body.
type call struct {
	model      string
	start, end int    // of the model's value in the body
	key        []byte // sticky key, empty for none
}

// parseCall finds the top-level model and the sticky key. The body must be one
// JSON object with exactly one string named model; a second one is refused,
// since the model server might see the other. Errors are *refusalError.
func parseCall(b []byte) (*call, error) {
	if !validJSON(b) {
		return nil, invalid(http.StatusBadRequest, "invalid_json", "", "The body is not valid JSON.")
	}
	var f fields
	if !f.scan(b) {
		return nil, invalid(http.StatusBadRequest, "invalid_json", "", "The body is not a JSON object.")
	}
	switch {
	case f.models == 0:
		return nil, invalid(http.StatusBadRequest, "missing_required_parameter", "model", "You must provide a model parameter.")
	case f.models > 1:
		return nil, invalid(http.StatusBadRequest, "duplicate_parameter", "model", "The body names model more than once.")
	}
	c := &call{start: f.model.start, end: f.model.end}
	if b[c.start] != '"' {
		return nil, invalid(http.StatusBadRequest, "invalid_type", "model", "model must be a string.")
	}
	c.model = unquote(b[c.start:c.end])
	c.key = f.key(b)
	return c, nil
}

// key returns the sticky key: prompt_cache_key, else user, else a hash of what
// the request is about. A blank one counts as none, so that no two strangers
// share a key that nobody gave.
func (f *fields) key(b []byte) []byte {
	for _, s := range []stretch{f.cacheKey, f.user} {
		raw := b[s.start:s.end]
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		text := string(raw)
		if raw[0] == '"' {
			text = unquote(raw)
		}
		if text = strings.TrimSpace(text); text != "" {
			return []byte(text)
		}
	}
	for _, s := range []stretch{f.messages, f.prompt, f.input} {
		if raw := b[s.start:s.end]; hasContent(raw) {
			return raw
		}
	}
	return nil
}

// hasContent tells a conversation from an empty value.
func hasContent(raw []byte) bool {
	return len(raw) > 64 || strings.Trim(string(raw), " \t\r\n[]{}\",:") != "" && string(raw) != "null"
}

// unquote returns the text of a valid JSON string.
func unquote(raw []byte) string {
	if inner := raw[1 : len(raw)-1]; !hasEscape(inner) {
		return string(inner)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil { // the body was checked
		panic(err)
	}
	return s
}

func hasEscape(b []byte) bool {
	for _, c := range b {
		if c == '\\' || c >= 0x80 {
			return true
		}
	}
	return false
}

// spliced returns the body in the pieces that are sent: with another value in
// the model's place and every other byte as it came, since a round trip through
// a decoder would round integers above 2^53.
func (c *call) spliced(b, model []byte) [3][]byte {
	if model == nil {
		return [3][]byte{b}
	}
	return [3][]byte{b[:c.start], model, b[c.end:]}
}
