package gitlab

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

func signed(key, body []byte, id string, at time.Time) http.Header {
	stamp := fmt.Sprint(at.Unix())
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	h := http.Header{}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", stamp)
	h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString([]byte("an older key's"))+" v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return h
}

func TestASignedWebhookOfGitLabIsCheckedOverIDTimeAndBody(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	key := []byte("0123456789abcdef0123456789abcdef")
	for _, secret := range []string{string(key), "whsec_" + base64.StdEncoding.EncodeToString(key)} {
		h := hook{secret: func() ([]byte, error) { return []byte(secret), nil }, now: func() time.Time { return now }}
		body := []byte(`{"object_kind":"push","ref":"refs/heads/main","project":{"path_with_namespace":"acme/app"}}`)
		d, err := h.Delivery(signed(key, body, "id-1", now), body)
		require.NoError(t, err)
		assert.Equal(t, forge.Delivery{ID: "id-1", Kind: forge.KindPush, Repository: "acme/app", Ref: "refs/heads/main"}, d)

		var bad *forge.BadSignature
		for name, header := range map[string]http.Header{
			"another key":  signed([]byte("another"), body, "id-1", now),
			"another body": signed(key, []byte("{}"), "id-1", now),
			"too old":      signed(key, body, "id-1", now.Add(-6*time.Minute)),
			"from later":   signed(key, body, "id-1", now.Add(6*time.Minute)),
		} {
			// A right token does not make up for a wrong signature.
			header.Set("X-Gitlab-Token", secret)
			_, err := h.Delivery(header, body)
			assert.ErrorAs(t, err, &bad, name)
		}
		moved := signed(key, body, "id-1", now)
		moved.Set("webhook-id", "id-2")
		_, err = h.Delivery(moved, body)
		assert.ErrorAs(t, err, &bad, "the id is signed as well")
	}
}
