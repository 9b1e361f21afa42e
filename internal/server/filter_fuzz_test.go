package server

import (
	"net/http/httptest"
	"net/url"
	"testing"
)

// FuzzFilter parses and evaluates whatever a client may send: an answer or a
// refusal, never a panic.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{`name = "chat"`, `NOT (a=b OR name:"x*")`, `created_at>="2026-01-01T00:00:00Z" AND name != "\""`, `((((`, `name = "\`, "name = \x85", `= = =`, `NOT`, `""`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := &call{Request: httptest.NewRequest("GET", "/?filter="+url.QueryEscape(text), nil)}
		keep, err := c.filter("name", "created_at", "model")
		if (keep == nil) == (err == nil) {
			t.Fatalf("%q gives neither an answer nor a refusal", text)
		}
		if err == nil {
			_ = keep(fields{"name": "chat", "created_at": "2026-01-01T00:00:00Z"})
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add("MTIzIGVwXzE")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseCursor(text)
		if err != nil {
			return
		}
		again, err := parseCursor(p.cursor())
		if err != nil || again.compare(p) != 0 {
			t.Fatalf("cursor %q does not come back: %v", text, err)
		}
	})
}
