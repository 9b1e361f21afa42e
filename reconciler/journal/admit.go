package journal

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// LongestKey is how many bytes the fields of a key, or an intent's ID, have together
// at most: what every database can index.
const LongestKey = 2000

// Admit checks a batch and returns it as every journal keeps it: with bytes of its own,
// and with text of others made valid UTF-8. A key is never changed, since it must be
// found again: a wrong one is *Bad.
func (b Batch) Admit() (Batch, error) {
	out := Batch{}
	for _, r := range b.Put {
		if err := r.Key.check(); err != nil {
			return Batch{}, err
		}
		out.Put = append(out.Put, Record{Key: r.Key, Value: own(r.Value)})
	}
	for _, k := range b.Delete {
		if err := k.check(); err != nil {
			return Batch{}, err
		}
		out.Delete = append(out.Delete, k)
	}
	for _, i := range b.Begin {
		if err := checkName("the id of an intent", i.ID); err != nil {
			return Batch{}, err
		}
		i.Repository, i.Stack, i.Address, i.Verb, i.Detail = plain(i.Repository), plain(i.Stack), plain(i.Address), plain(i.Verb), own(i.Detail)
		out.Begin = append(out.Begin, i)
	}
	for _, o := range b.End {
		if err := checkName("the id of an intent", o.Intent); err != nil {
			return Batch{}, err
		}
		o.Result, o.Detail = plain(o.Result), own(o.Detail)
		out.End = append(out.End, o)
	}
	for _, e := range b.Entries {
		e.Repository, e.Stack, e.Endpoint = plain(e.Repository), plain(e.Stack), plain(e.Endpoint)
		e.Commit, e.Kind, e.Text, e.Detail = plain(e.Commit), plain(e.Kind), plain(e.Text), own(e.Detail)
		out.Entries = append(out.Entries, e)
	}
	return out, nil
}

func (k Key) check() error {
	if k.Kind == "" {
		return &Bad{Why: fmt.Sprintf("the key %+q has no kind", k)}
	}
	if n := len(k.Kind) + len(k.Repository) + len(k.Stack) + len(k.Name); n > LongestKey {
		return &Bad{Why: fmt.Sprintf("a key of %d bytes; %d is the most", n, LongestKey)}
	}
	for _, part := range []string{k.Kind, k.Repository, k.Stack, k.Name} {
		if !isText(part) {
			return &Bad{Why: fmt.Sprintf("the key %+q is not UTF-8 text", k)}
		}
	}
	return nil
}

func checkName(what, name string) error {
	switch {
	case name == "":
		return &Bad{Why: what + " is empty"}
	case len(name) > LongestKey:
		return &Bad{Why: fmt.Sprintf("%s has %d bytes; %d is the most", what, len(name), LongestKey)}
	case !isText(name):
		return &Bad{Why: fmt.Sprintf("%s, %+q, is not UTF-8 text", what, name)}
	}
	return nil
}

// isText reports whether a text can be kept as it is: PostgreSQL takes no NUL.
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// plain makes text of others one that can be kept.
func plain(s string) string {
	if isText(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func own(b []byte) []byte { return append([]byte{}, bytes.Clone(b)...) }
