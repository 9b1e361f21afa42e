package server

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
)

// decode reads a JSON body. An unknown field is refused, since a mistyped gate
// that is ignored would let everything pass. An empty body is an empty object.
func decode[T any](c *call) (T, error) {
	var v T
	if len(bytes.TrimSpace(c.body)) == 0 {
		return v, nil
	}
	dec := json.NewDecoder(bytes.NewReader(c.body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return v, badRequest(jsonField(err), "the body is not valid: "+jsonMessage(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return v, badRequest("", "the body holds more than one JSON value")
	}
	return v, nil
}

func jsonField(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return wrong.Field
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return strings.Trim(name, `"`)
	}
	return ""
}

func jsonMessage(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Sprintf("%s cannot be of JSON type %s", cmp.Or(wrong.Field, "it"), wrong.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "the JSON ends too early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// creator is the caller of a create, with its idempotency key bound to this very
// route and body.
func (c *call) creator() (engine.Caller, error) {
	by := c.caller()
	key := c.Header.Get("Idempotency-Key")
	if key == "" {
		return by, nil
	}
	if len(key) > 255 {
		return by, badRequest("Idempotency-Key", "an idempotency key has at most 255 characters")
	}
	by.IdempotencyKey = hashed(c.key.ProjectID, c.Method, c.URL.Path, key)
	by.Digest = hashed(string(c.body))
	return by, nil
}

func hashed(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// mask is a parsed updateMask; nil when none was sent.
type mask []string

func (c *call) updateMask() mask { return mask(list(c.URL.Query().Get("updateMask"))) }

// has reports whether a path, or one above it, is named.
func (m mask) has(path string) bool {
	for _, p := range m {
		if p == path || strings.HasPrefix(path, p+".") || p == "*" {
			return true
		}
	}
	return false
}

// check refuses paths that are not in a resource's list.
func (m mask) check(known ...string) error {
	for _, p := range m {
		ok := p == "*"
		for _, k := range known {
			ok = ok || p == k || strings.HasPrefix(p, k+".") || strings.HasPrefix(k, p+".")
		}
		if !ok {
			return badRequest("updateMask", fmt.Sprintf("cannot update %q; the mutable fields are %s", p, strings.Join(known, ", ")))
		}
	}
	return nil
}

// list splits a comma list and drops what is empty, since one client version sends
// lone commas.
func list(s string) []string {
	var out []string
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
