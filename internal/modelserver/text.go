package modelserver

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// vocabulary is what the answers are made of. One entry is one token.
var vocabulary = [...]string{
	"water", "gate", "flow", "level", "river", "stone", "basin", "lock", "weir", "stream",
	"rises", "falls", "turns", "opens", "holds", "slowly", "evenly", "and", "then", "below",
}

// write draws n tokens. All but the first begin with a blank, so that their
// concatenation reads as text.
func write(c call, n int) []string {
	tokens := make([]string, n)
	for i := range tokens {
		w := vocabulary[c.rand.IntN(len(vocabulary))]
		if i > 0 {
			w = " " + w
		}
		tokens[i] = w
	}
	return tokens
}

// countTokens is this server's tokenizer: one token a word.
func countTokens(text string) int { return len(strings.Fields(text)) }

// id makes the identity of an answer, the same for the same seed and call.
func (s *Server) id(prefix string, c call) string {
	h := xxhash.NewWithSeed(s.cfg.Seed)
	_, _ = fmt.Fprintf(h, "%s/%s/%d/%d", prefix, s.cfg.Model, s.born.UnixNano(), c.seq)
	return fmt.Sprintf("%s-%016x%08x", prefix, h.Sum64(), c.seq)
}

// fingerprint stands for the configuration that made the answer.
func (s *Server) fingerprint() string {
	return fmt.Sprintf("fp_%010x", xxhash.Sum64String(s.cfg.Model)&0xffffffffff)
}

// prompts is an OpenAI input: one text, many texts, one list of token ids or many
// of them.
type prompts []prompt

// prompt is one input, its text or the decimal form of its token ids.
type prompt struct {
	text   string
	tokens int
}

// UnmarshalJSON reads each of the four forms.
func (p *prompts) UnmarshalJSON(b []byte) error {
	if one, err := readPrompt(b); err == nil {
		*p = prompts{one}
		return nil
	}
	var many []json.RawMessage
	if err := json.Unmarshal(b, &many); err != nil || len(many) == 0 {
		return fmt.Errorf("want text, a list of texts, token ids or a list of those")
	}
	list := make(prompts, 0, len(many))
	for _, raw := range many {
		one, err := readPrompt(raw)
		if err != nil {
			return err
		}
		list = append(list, one)
	}
	*p = list
	return nil
}

// readPrompt reads a text or a list of token ids, which must not be empty.
func readPrompt(b []byte) (prompt, error) {
	var text string
	if json.Unmarshal(b, &text) == nil && string(b) != "null" {
		return prompt{text: text, tokens: countTokens(text)}, nil
	}
	var ids []int
	if err := json.Unmarshal(b, &ids); err != nil || len(ids) == 0 {
		return prompt{}, fmt.Errorf("%.40s is neither text nor a list of token ids", b)
	}
	return prompt{text: fmt.Sprint(ids), tokens: len(ids)}, nil
}

// content is a chat message's content: a text, or parts of which the texts count.
type content string

// UnmarshalJSON reads a text, null, or a list of parts.
func (c *content) UnmarshalJSON(b []byte) error {
	var text *string
	if json.Unmarshal(b, &text) == nil {
		if text != nil {
			*c = content(*text)
		}
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return fmt.Errorf("message content is neither text nor a list of parts")
	}
	texts := make([]string, 0, len(parts))
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	*c = content(strings.Join(texts, "\n"))
	return nil
}
