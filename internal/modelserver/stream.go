package modelserver

import (
	"encoding/json"
	"errors"
	"net/http"
)

// stream writes server-sent events, each flushed by itself.
type stream struct {
	w    http.ResponseWriter
	ctrl *http.ResponseController
}

// openStream sends the headers at once, so that a proxy sees the answer begin
// before the first token exists.
func openStream(w http.ResponseWriter) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, ctrl: http.NewResponseController(w)}
	_ = s.flush()
	return s
}

// flush pushes what is buffered; a writer that cannot flush is no error.
func (s *stream) flush() error {
	if err := s.ctrl.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// send writes one event; false when the client is gone.
func (s *stream) send(event any) bool {
	b, err := json.Marshal(event)
	if err != nil {
		return false
	}
	return s.line(b)
}

// done writes the end mark of the OpenAI protocol.
func (s *stream) done() { s.line([]byte("[DONE]")) }

// line writes one data line and flushes it.
func (s *stream) line(b []byte) bool {
	if _, err := s.w.Write(append(append([]byte("data: "), b...), '\n', '\n')); err != nil {
		return false
	}
	return s.flush() == nil
}

// envelope is what every chunk and every whole answer shares. Usage is absent
// unless asked for, null in the chunks before the last.
type envelope struct {
	ID                string          `json:"id"`
	Object            string          `json:"object"`
	Created           int64           `json:"created"`
	Model             string          `json:"model"`
	SystemFingerprint string          `json:"system_fingerprint"`
	Choices           any             `json:"choices"`
	Usage             json.RawMessage `json:"usage,omitempty"`
}

// with returns the envelope around choices.
func (e envelope) with(choices any) envelope {
	e.Choices = choices
	return e
}

// counted returns the envelope with a usage.
func (e envelope) counted(u usage) envelope {
	e.Usage, _ = json.Marshal(u) // three integers always encode
	return e
}

// envelope makes the frame of an answer to the call.
func (s *Server) envelope(prefix, object, model string, c call) envelope {
	return envelope{
		ID: s.id(prefix, c), Object: object, Created: s.cfg.Now().Unix(),
		Model: model, SystemFingerprint: s.fingerprint(),
	}
}
