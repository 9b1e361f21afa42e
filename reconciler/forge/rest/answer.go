package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Answer is an answer of 400 or more.
type Answer struct {
	Method string
	Path   string
	Status int
	Header http.Header
	Body   []byte
}

func (a *Answer) Error() string {
	text := fmt.Sprintf("%s %s: %d %s", a.Method, a.Path, a.Status, http.StatusText(a.Status))
	if m := a.Message(); m != "" {
		text += ": " + m
	}
	return text
}

// Message is what the forge says for people, on one line and bounded: text of others.
func (a *Answer) Message() string {
	var known struct {
		Message json.RawMessage `json:"message"`
		Error   json.RawMessage `json:"error"`
		Errors  json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(a.Body, &known) != nil {
		return oneLine(string(a.Body))
	}
	var parts []string
	for _, raw := range []json.RawMessage{known.Message, known.Error, known.Errors} {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		if text = oneLine(text); text != "" && text != "null" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}

func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }), " ")
	if runes := []rune(text); len(runes) > 300 {
		return string(runes[:300]) + "…"
	}
	return text
}

// Op is one thing that is asked of a forge: what it is for people, and which right of
// the token or setting it needs.
type Op struct{ What, Needs string }

// Fail gives an error the form that its reaction needs: *forge.Limited, *forge.Refused,
// or, for what is worth another try, the error itself with the operation before it.
func (o Op) Fail(err error) error {
	var answer *Answer
	var limited *forge.Limited
	var refused *forge.Refused
	switch {
	case err == nil, errors.As(err, &limited), errors.As(err, &refused):
		return err
	case !errors.As(err, &answer):
		return fmt.Errorf("%s: %w", o.What, err)
	case answer.isLimit():
		return &forge.Limited{Until: answer.until(time.Now()), What: o.What}
	case answer.Status >= 500, answer.Status == http.StatusRequestTimeout, answer.Status < 400:
		return fmt.Errorf("%s: %w", o.What, answer)
	}
	return &forge.Refused{Status: answer.Status, What: o.What, Hint: o.hint(answer)}
}

// Is reports whether an error is an answer of one status.
func Is(err error, status int) bool {
	var answer *Answer
	return errors.As(err, &answer) && answer.Status == status
}

// isLimit reports whether it is the number of calls that was refused. GitHub says so
// with 403 as well: for the hour's limit with none remaining, for the short-term one
// with Retry-After or in words only.
func (a *Answer) isLimit() bool {
	if a.Status == http.StatusTooManyRequests {
		return true
	}
	if a.Status != http.StatusForbidden {
		return false
	}
	words := strings.ToLower(string(a.Body))
	return a.Header.Get("Retry-After") != "" || a.Header.Get("X-RateLimit-Remaining") == "0" ||
		strings.Contains(words, "rate limit") || strings.Contains(words, "abuse detection")
}

// Bounds of a wait that a forge asks for. Without an instant it is a minute, as GitHub
// asks for its short-term limit.
const (
	waitWithout = time.Minute
	longestWait = 2 * time.Hour
)

// until is when to try again: Retry-After in seconds or as a date, else the instant at
// which the limit is reset, told against the forge's own clock.
func (a *Answer) until(now time.Time) time.Time {
	wait := waitWithout
	theirs := now
	if date, err := http.ParseTime(a.Header.Get("Date")); err == nil {
		theirs = date
	}
	after := a.Header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(after, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		wait = at.Sub(theirs)
	} else if reset, ok := a.reset(); ok {
		wait = reset.Sub(theirs)
	}
	return now.Add(min(max(wait, time.Second), longestWait))
}

// reset is when the limit starts anew, if it is used up.
func (a *Answer) reset() (time.Time, bool) {
	for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} {
		seconds, err := strconv.ParseInt(a.Header.Get(prefix+"Reset"), 10, 64)
		if err == nil && a.Header.Get(prefix+"Remaining") == "0" {
			return time.Unix(seconds, 0), true
		}
	}
	return time.Time{}, false
}

// hint says how to mend a refusal.
func (o Op) hint(a *Answer) string {
	var hint string
	switch a.Status {
	case http.StatusUnauthorized:
		hint = "the token is wrong, has expired or was revoked: put a valid one where the configuration says"
	case http.StatusForbidden:
		hint = "the token lacks a right: it needs " + o.Needs
		if rights := a.Header.Get("X-Accepted-GitHub-Permissions"); rights != "" {
			hint += " (" + oneLine(rights) + ")"
		}
		if sso := a.Header.Get("X-GitHub-SSO"); sso != "" {
			hint += ", and it must be authorized for the organization's single sign-on"
		}
	case http.StatusNotFound, http.StatusGone:
		hint = "it is not there, or the token may not see it: check the repository's name, and that the token has " + o.Needs
	case http.StatusConflict, http.StatusPreconditionFailed:
		hint = "it has changed at the forge: read it again"
	case http.StatusMethodNotAllowed:
		hint = "the forge does not allow this here: check its version and its settings"
	default:
		hint = "the forge does not take this"
	}
	if m := a.Message(); m != "" {
		hint += fmt.Sprintf(" (the forge says %q)", m)
	}
	return hint
}
