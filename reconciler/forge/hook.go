package forge

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Kinds of deliveries that every adaptor names alike.
const (
	KindPush        = "push"
	KindPullRequest = "pull_request"
	KindComment     = "comment"
	KindReview      = "review"
	KindPing        = "ping"
	KindUnknown     = "unknown"
)

// VerifySHA256 checks the hex HMAC-SHA256 of a body, with or without "sha256=" before
// it, in constant time. An empty secret verifies nothing.
func VerifySHA256(secret, body []byte, signature string) error {
	if len(secret) == 0 {
		return &BadSignature{Why: "no webhook secret is configured"}
	}
	if signature == "" {
		return &BadSignature{Why: "the signature is missing: set the secret at the forge's webhook"}
	}
	given, err := hex.DecodeString(strings.TrimPrefix(signature, "sha256="))
	if err != nil {
		return &BadSignature{Why: "the signature is not hexadecimal"}
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	if !hmac.Equal(given, mac.Sum(nil)) {
		return &BadSignature{Why: "the signature does not belong to this body and secret"}
	}
	return nil
}

// mostDepth is how deep a payload may nest; forges' own stay below 20.
const mostDepth = 64

// Payload is the JSON of a delivery, looked into field by field. What is missing, of
// another type or too deep reads as empty.
type Payload struct{ raw json.RawMessage }

// ReadPayload takes a body. One that nests deeper than a forge's is as if it were empty,
// so that no parser ever recurses into it.
func ReadPayload(body []byte) Payload {
	if deeperThan(mostDepth, body) {
		return Payload{}
	}
	return Payload{raw: body}
}

// IsObject reports whether the payload is a JSON object at all.
func (p Payload) IsObject() bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(p.raw, &fields) == nil && fields != nil
}

// At is the value below a path of names.
func (p Payload) At(path ...string) Payload {
	raw := p.raw
	for _, name := range path {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return Payload{}
		}
		raw = fields[name]
	}
	return Payload{raw: raw}
}

// Given reports whether there is a value and it is not null.
func (p Payload) Given() bool { return len(p.raw) > 0 && string(p.raw) != "null" }

// Text is a string of at most 512 bytes; a longer one is none of a forge's names.
func (p Payload) Text() string {
	var s string
	if json.Unmarshal(p.raw, &s) != nil || len(s) > 512 {
		return ""
	}
	return s
}

// Number is a positive whole number.
func (p Payload) Number() int {
	var n int
	if json.Unmarshal(p.raw, &n) != nil || n < 0 {
		return 0
	}
	return n
}

// deeperThan scans for nesting without building anything.
func deeperThan(most int, body []byte) bool {
	depth, inText, escaped := 0, false, false
	for _, c := range body {
		switch {
		case escaped:
			escaped = false
		case inText:
			escaped = c == '\\'
			inText = c != '"'
		case c == '"':
			inText = true
		case c == '{' || c == '[':
			if depth++; depth > most {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// Word is a forge's own word for a kind, which comes from a header that no signature
// covers: letters and underscores, or unknown.
func Word(kind string) string {
	if kind == "" || len(kind) > 40 {
		return KindUnknown
	}
	for _, r := range kind {
		if (r < 'a' || r > 'z') && r != '_' {
			return KindUnknown
		}
	}
	return kind
}

// DeliveryID bounds the forge's own id of a delivery.
func DeliveryID(id string) string {
	if len(id) > 200 {
		return ""
	}
	return id
}
