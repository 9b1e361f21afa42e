package modelserver

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// chatRequest is the part of a chat call that this server reads.
type chatRequest struct {
	generation
	Messages []struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	} `json:"messages"`
}

// chatMessage is a whole message, or what a chunk adds to it.
type chatMessage struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// chatChoice is a whole answer.
type chatChoice struct {
	Index        int         `json:"index"`
	Message      chatMessage `json:"message"`
	Logprobs     *struct{}   `json:"logprobs"`
	FinishReason string      `json:"finish_reason"`
}

// chatDelta is one chunk's part of an answer.
type chatDelta struct {
	Index        int         `json:"index"`
	Delta        chatMessage `json:"delta"`
	Logprobs     *struct{}   `json:"logprobs"`
	FinishReason *string     `json:"finish_reason"`
}

// chat answers POST /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request, c call) error {
	var req chatRequest
	if err := s.admit(r, c, &req); err != nil {
		return err
	}
	if err := s.checkModel(req.Model); err != nil {
		return err
	}
	if len(req.Messages) == 0 {
		return invalid("messages", "'messages' must hold at least one message")
	}
	if err := req.check(); err != nil {
		return err
	}
	promptTokens := 0
	for _, m := range req.Messages {
		promptTokens += countTokens(string(m.Content))
	}
	list, latency := s.draw(req.generation, c, 1)
	if req.Stream {
		s.streamChat(w, r, streamed{req.generation, c, list, latency, count(promptTokens, list)})
		return nil
	}
	if !pause(r.Context(), latency) {
		return nil // the client is gone; nobody reads an answer
	}
	text := strings.Join(list[0].tokens, "")
	body := s.envelope("chatcmpl", "chat.completion", req.Model, c).counted(count(promptTokens, list))
	writeJSON(w, http.StatusOK, body.with([]chatChoice{{
		Message: chatMessage{Role: "assistant", Content: &text}, FinishReason: list[0].finish,
	}}))
	return nil
}

// streamed is one answer that is to be streamed.
type streamed struct {
	generation
	call    call
	choices []choice
	latency time.Duration
	usage   usage
}

// streamChat sends the role, the tokens, the finish reason, the usage when asked
// for, and the end mark.
func (s *Server) streamChat(w http.ResponseWriter, r *http.Request, a streamed) {
	frame := s.envelope("chatcmpl", "chat.completion.chunk", a.Model, a.call)
	if a.wantsUsage() {
		frame.Usage = json.RawMessage("null")
	}
	out, empty, answer := openStream(w), "", a.choices[0]
	if !out.send(frame.with([]chatDelta{{Delta: chatMessage{Role: "assistant", Content: &empty}}})) {
		return
	}
	p := newPace(a.latency, len(answer.tokens))
	for _, token := range answer.tokens {
		if !p.next(r.Context()) || !out.send(frame.with([]chatDelta{{Delta: chatMessage{Content: &token}}})) {
			return
		}
	}
	if !out.send(frame.with([]chatDelta{{FinishReason: &answer.finish}})) {
		return
	}
	if a.wantsUsage() && !out.send(frame.with([]chatDelta{}).counted(a.usage)) {
		return
	}
	out.done()
}
