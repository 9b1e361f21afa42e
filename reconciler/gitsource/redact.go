package gitsource

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// redacted is an error whose text has no secret; what it wraps is still found by
// errors.Is and errors.As.
type redacted struct {
	error
	text string
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.error }

// vault knows the secrets that a remote has used, so that none leaves in an error: a
// server may send back what it was sent.
type vault struct {
	mu    sync.Mutex
	known []string // newest last, few
}

// keep remembers a secret. Very short ones are not worth hiding, and would tear texts.
func (v *vault) keep(secret string) string {
	if len(secret) < 4 {
		return secret
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.known {
		if s == secret {
			return secret
		}
	}
	v.known = append(v.known[max(0, len(v.known)-7):], secret)
	return secret
}

// clean hides secrets and control characters in an error's text, and cuts a long one.
func (v *vault) clean(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	v.mu.Lock()
	for _, s := range v.known {
		text = strings.ReplaceAll(text, s, "REDACTED")
	}
	v.mu.Unlock()
	text = printable(text)
	if len(text) > 2000 {
		text = strings.ToValidUTF8(text[:2000], "") + " …"
	}
	if text == err.Error() {
		return err
	}
	return &redacted{err, text}
}

// printable writes text of others so that it cannot be mistaken for something else:
// control and invisible characters and bytes that are not UTF-8 as escapes.
func printable(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}
