package modelserver

import (
	"context"
	"fmt"
	"time"
)

// usage counts tokens as the OpenAI API reports them.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// generation is what the chat and the text route ask for alike.
type generation struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	N             *int   `json:"n"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int `json:"max_tokens"`
	MaxCompletionTokens *int `json:"max_completion_tokens"`
}

// check refuses what this server cannot answer as asked.
func (g generation) check() error {
	if g.N != nil && *g.N != 1 {
		return invalid("n", fmt.Sprintf("n is %d; this server answers one choice a prompt", *g.N))
	}
	if g.StreamOptions != nil && !g.Stream {
		return invalid("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	for name, n := range map[string]*int{"max_tokens": g.MaxTokens, "max_completion_tokens": g.MaxCompletionTokens} {
		if n != nil && *n < 1 {
			return invalid(name, fmt.Sprintf("%s must be at least 1, got %d", name, *n))
		}
	}
	return nil
}

// wantsUsage reports whether the stream ends with a usage chunk.
func (g generation) wantsUsage() bool {
	return g.StreamOptions != nil && g.StreamOptions.IncludeUsage
}

// length is how many tokens the answer has and why it ends there: "stop" at the
// server's own length, "length" at the request's lower cap.
func (g generation) length(own int) (n int, finish string) {
	n, finish = own, "stop"
	for _, limit := range []*int{g.MaxTokens, g.MaxCompletionTokens} {
		if limit != nil && *limit < n {
			n, finish = *limit, "length"
		}
	}
	return n, finish
}

// choice is one drawn answer.
type choice struct {
	index  int
	tokens []string
	finish string
}

// draw makes the answers, one a prompt, and the time that they take together.
func (s *Server) draw(g generation, c call, prompts int) ([]choice, time.Duration) {
	n, finish := g.length(s.cfg.Tokens)
	latency := s.cfg.Latency.Sample(c.rand)
	list := make([]choice, prompts)
	for i := range list {
		list[i] = choice{index: i, tokens: write(c, n), finish: finish}
	}
	return list, latency
}

// count is the usage of a call.
func count(promptTokens int, list []choice) usage {
	u := usage{PromptTokens: promptTokens}
	for _, ch := range list {
		u.CompletionTokens += len(ch.tokens)
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}

// firstTokenShare is the part of an answer's latency before its first token.
const firstTokenShare = 4 // one quarter

// pace hands out an answer's latency token by token: a quarter before the first
// one, the rest evenly, so that a streamed answer takes as long as a whole one.
type pace struct {
	first, each time.Duration
	sent        int
}

// newPace spreads the latency over the tokens. One token alone takes all of it.
func newPace(latency time.Duration, tokens int) *pace {
	if tokens < 2 {
		return &pace{first: latency}
	}
	first := latency / firstTokenShare
	return &pace{first: first, each: (latency - first) / time.Duration(tokens-1)}
}

// next waits for the next token; false when the client is gone.
func (p *pace) next(ctx context.Context) bool {
	d := p.each
	if p.sent == 0 {
		d = p.first
	}
	p.sent++
	return pause(ctx, d)
}
