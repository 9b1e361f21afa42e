package server

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// fields are the values that a filter may name.
type fields map[string]string

// predicate keeps an item.
type predicate func(fields) bool

// filter parses ?filter: comparisons = != < <= > >= and, on text, : for a part of
// it; AND, OR, NOT and parentheses; values in double quotes or bare words; * at
// either end of a name for a prefix or a suffix. known are the fields.
func (c *call) filter(known ...string) (predicate, error) {
	text := strings.TrimSpace(c.URL.Query().Get("filter"))
	if text == "" {
		return func(fields) bool { return true }, nil
	}
	p := &filterParser{known: known}
	var err error
	if len(text) > maxFilter {
		err = fmt.Errorf("it has %d bytes, at most %d", len(text), maxFilter)
	} else {
		err = p.scan(text)
	}
	var keep predicate
	if err == nil {
		keep, err = p.either()
	}
	if err == nil && p.at < len(p.tokens) {
		err = fmt.Errorf("%q was not expected", p.tokens[p.at].text)
	}
	if err != nil {
		return nil, badRequest("filter", "invalid filter expression: "+err.Error())
	}
	return keep, nil
}

// maxFilter bounds an expression, in bytes.
const maxFilter = 4096

type filterToken struct {
	text   string
	quoted bool
}

type filterParser struct {
	known  []string
	tokens []filterToken
	at     int
	depth  int
}

func (p *filterParser) scan(s string) error {
	for i := 0; i < len(s); {
		switch ch := s[i]; {
		case space(ch):
			i++
		case ch == '"':
			value, rest, err := quoted(s[i+1:])
			if err != nil {
				return err
			}
			p.tokens = append(p.tokens, filterToken{value, true})
			i = len(s) - len(rest)
		case strings.ContainsRune("()=:", rune(ch)):
			p.tokens = append(p.tokens, filterToken{text: s[i : i+1]})
			i++
		case strings.ContainsRune("!<>", rune(ch)):
			n := 1
			if i+1 < len(s) && s[i+1] == '=' {
				n = 2
			}
			p.tokens = append(p.tokens, filterToken{text: s[i : i+n]})
			i += n
		default:
			j := i
			for j < len(s) && !space(s[j]) && !strings.ContainsRune(`()=:!<>"`, rune(s[j])) {
				j++
			}
			p.tokens = append(p.tokens, filterToken{text: s[i:j]})
			i = j
		}
	}
	return nil
}

// space is ASCII white space: a byte of a longer character is none.
func space(b byte) bool { return strings.IndexByte(" \t\r\n", b) >= 0 }

func quoted(s string) (value, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i < len(s) {
				b.WriteByte(s[i])
			}
		case '"':
			return b.String(), s[i+1:], nil
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", errors.New("a quote is not closed")
}

// word takes the next token if it is this word.
func (p *filterParser) word(w string) bool {
	if p.at < len(p.tokens) && !p.tokens[p.at].quoted && p.tokens[p.at].text == w {
		p.at++
		return true
	}
	return false
}

func (p *filterParser) either() (predicate, error) {
	left, err := p.both()
	for err == nil && p.word("OR") {
		var right predicate
		right, err = p.both()
		l := left
		left = func(f fields) bool { return l(f) || right(f) }
	}
	return left, err
}

func (p *filterParser) both() (predicate, error) {
	left, err := p.term()
	for err == nil && p.word("AND") {
		var right predicate
		right, err = p.term()
		l := left
		left = func(f fields) bool { return l(f) && right(f) }
	}
	return left, err
}

// maxFilterDepth bounds nesting, so that a hostile filter cannot exhaust the stack.
const maxFilterDepth = 50

func (p *filterParser) term() (predicate, error) {
	if p.depth++; p.depth > maxFilterDepth {
		return nil, errors.New("nested too deeply")
	}
	defer func() { p.depth-- }()
	if p.word("NOT") {
		inner, err := p.term()
		return func(f fields) bool { return !inner(f) }, err
	}
	if p.word("(") {
		inner, err := p.either()
		if err == nil && !p.word(")") {
			err = errors.New("a parenthesis is not closed")
		}
		return inner, err
	}
	return p.comparison()
}

func (p *filterParser) comparison() (predicate, error) {
	if p.at+2 >= len(p.tokens) {
		return nil, errors.New("a comparison such as name = \"chat\" is missing")
	}
	field, op, value := p.tokens[p.at].text, p.tokens[p.at+1].text, p.tokens[p.at+2].text
	p.at += 3
	found := false
	for _, k := range p.known {
		found = found || k == field
	}
	if !found {
		return nil, fmt.Errorf("unknown field %q; the fields are %s", field, strings.Join(p.known, ", "))
	}
	compare, ok := map[string]func(have, want string) bool{
		"=": matches, "!=": func(h, w string) bool { return !matches(h, w) }, ":": strings.Contains,
		"<":  func(h, w string) bool { return order3(h, w) < 0 },
		"<=": func(h, w string) bool { return order3(h, w) <= 0 },
		">":  func(h, w string) bool { return order3(h, w) > 0 },
		">=": func(h, w string) bool { return order3(h, w) >= 0 },
	}[op]
	if !ok {
		return nil, fmt.Errorf("unknown operator %q", op)
	}
	switch field {
	case "created_at", "updated_at":
		if _, err := time.Parse(time.RFC3339, value); err != nil {
			return nil, fmt.Errorf("%q is not an RFC 3339 time such as \"2026-09-16T20:39:45Z\"", value)
		}
	case "model": // a resource name means the model, whatever its revision
		value, _ = splitRevision(bare(value, "models"))
	}
	return func(f fields) bool { return compare(f[field], value) }, nil
}

// matches compares text, with * at either end of the wanted one standing for
// anything.
func matches(have, want string) bool {
	head, tail := strings.HasPrefix(want, "*"), strings.HasSuffix(want, "*") && len(want) > 1
	core := strings.TrimSuffix(strings.TrimPrefix(want, "*"), "*")
	switch {
	case head && tail:
		return strings.Contains(have, core)
	case head:
		return strings.HasSuffix(have, core)
	case tail:
		return strings.HasPrefix(have, core)
	}
	return order3(have, want) == 0
}

// order3 compares instants as instants and everything else as text.
func order3(a, b string) int {
	x, errX := time.Parse(time.RFC3339, a)
	y, errY := time.Parse(time.RFC3339, b)
	if errX == nil && errY == nil {
		return x.Compare(y)
	}
	return strings.Compare(a, b)
}
