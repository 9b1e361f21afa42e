package gitlab

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Hook reads GitLab's webhooks. One that is signed (webhook-signature, over id, time
// and body, with the webhook's signing token) is checked by its signature; else the
// secret token in X-Gitlab-Token must be the secret.
func Hook(secret func() ([]byte, error)) forge.Hook { return hook{secret: secret, now: time.Now} }

type hook struct {
	secret func() ([]byte, error)
	now    func() time.Time
}

func (h hook) Delivery(header http.Header, body []byte) (forge.Delivery, error) {
	secret, err := h.secret()
	if err != nil {
		return forge.Delivery{}, fmt.Errorf("the webhook's secret cannot be read: %w", err)
	}
	if err := h.verify(secret, header, body); err != nil {
		return forge.Delivery{}, err
	}
	d := forge.Delivery{ID: forge.DeliveryID(deliveryID(header)), Kind: forge.KindUnknown}
	p := forge.ReadPayload(body)
	if !p.IsObject() {
		return d, nil
	}
	kind := p.At("object_kind").Text()
	d.Repository = p.At("project", "path_with_namespace").Text()
	switch kind {
	case "push", "tag_push":
		d.Kind, d.Ref = forge.KindPush, p.At("ref").Text()
	case "merge_request":
		d.Kind, d.PullRequest = forge.KindPullRequest, p.At("object_attributes", "iid").Number()
		switch p.At("object_attributes", "action").Text() {
		case "approved", "unapproved", "approval", "unapproval":
			d.Kind = forge.KindReview
		}
	case "note":
		d.Kind, d.PullRequest = forge.KindComment, p.At("merge_request", "iid").Number()
	default:
		d.Kind = forge.Word(kind)
	}
	return d, nil
}

// deliveryID stays the same when GitLab sends a delivery again.
func deliveryID(header http.Header) string {
	for _, name := range []string{"webhook-id", "Idempotency-Key", "X-Gitlab-Event-UUID"} {
		if id := header.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// farthest is how old a signed delivery may be: a recorded one is worth nothing later.
const farthest = 5 * time.Minute

func (h hook) verify(secret []byte, header http.Header, body []byte) error {
	if len(secret) == 0 {
		return &forge.BadSignature{Why: "no webhook secret is configured"}
	}
	signatures := header.Get("webhook-signature")
	if signatures == "" {
		token := header.Get("X-Gitlab-Token")
		if token == "" {
			return &forge.BadSignature{Why: "signature and token are missing: set the secret at the webhook"}
		}
		// Of hashes, so that the time does not tell the length either.
		given, want := sha256.Sum256([]byte(token)), sha256.Sum256(secret)
		if subtle.ConstantTimeCompare(given[:], want[:]) != 1 {
			return &forge.BadSignature{Why: "the token is not the webhook's secret"}
		}
		return nil
	}
	id, stamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || h.now().Sub(time.Unix(seconds, 0)).Abs() > farthest {
		return &forge.BadSignature{Why: "the time of the signature is missing or not of now"}
	}
	mac := hmac.New(sha256.New, signingKey(secret))
	_, _ = fmt.Fprintf(mac, "%s.%s.", id, stamp)
	mac.Write(body)
	want := mac.Sum(nil)
	for one := range strings.FieldsSeq(signatures) {
		given, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(one, "v1,"))
		if err == nil && strings.HasPrefix(one, "v1,") && hmac.Equal(given, want) {
			return nil
		}
	}
	return &forge.BadSignature{Why: "the signature does not belong to this body and secret"}
}

// signingKey is the key in a signing token, which is written whsec_ and its base64.
func signingKey(secret []byte) []byte {
	if text, ok := strings.CutPrefix(string(secret), "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil {
			return key
		}
	}
	return secret
}
