package gitea

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Hook reads the webhooks of Gitea and Forgejo, which are signed with HMAC-SHA256.
func Hook(secret func() ([]byte, error)) forge.Hook { return hook{secret} }

type hook struct{ secret func() ([]byte, error) }

func (h hook) Delivery(header http.Header, body []byte) (forge.Delivery, error) {
	secret, err := h.secret()
	if err != nil {
		return forge.Delivery{}, fmt.Errorf("the webhook's secret cannot be read: %w", err)
	}
	signature := first(header, "X-Forgejo-Signature", "X-Gitea-Signature", "X-Hub-Signature-256")
	if err := forge.VerifySHA256(secret, body, signature); err != nil {
		return forge.Delivery{}, err
	}
	d := forge.Delivery{
		ID:   forge.DeliveryID(first(header, "X-Forgejo-Delivery", "X-Gitea-Delivery", "X-GitHub-Delivery")),
		Kind: forge.KindUnknown,
	}
	p := forge.ReadPayload(body)
	if !p.IsObject() {
		return d, nil
	}
	d.Kind = kind(first(header, "X-Forgejo-Event", "X-Gitea-Event", "X-GitHub-Event"))
	d.Repository = p.At("repository", "full_name").Text()
	d.Ref = p.At("ref").Text()
	d.PullRequest = p.At("pull_request", "number").Number()
	if p.At("issue", "pull_request").Given() {
		d.PullRequest = p.At("issue", "number").Number()
	}
	return d, nil
}

func kind(event string) string {
	switch {
	case event == "issue_comment" || event == "pull_request_comment":
		return forge.KindComment
	case strings.HasPrefix(event, "pull_request_approved"), strings.HasPrefix(event, "pull_request_rejected"), strings.HasPrefix(event, "pull_request_review"):
		return forge.KindReview
	case strings.HasPrefix(event, "pull_request"):
		return forge.KindPullRequest
	}
	return forge.Word(event)
}

// first is the first header of some names that is given.
func first(header http.Header, names ...string) string {
	for _, name := range names {
		if v := header.Get(name); v != "" {
			return v
		}
	}
	return ""
}
