package github

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Hook reads GitHub's webhooks, which are signed with HMAC-SHA256.
func Hook(secret func() ([]byte, error)) forge.Hook { return hook{secret} }

type hook struct{ secret func() ([]byte, error) }

func (h hook) Delivery(header http.Header, body []byte) (forge.Delivery, error) {
	secret, err := h.secret()
	if err != nil {
		return forge.Delivery{}, fmt.Errorf("the webhook's secret cannot be read: %w", err)
	}
	if err := forge.VerifySHA256(secret, body, header.Get("X-Hub-Signature-256")); err != nil {
		return forge.Delivery{}, err
	}
	if strings.HasPrefix(header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			form = nil
		}
		body = []byte(form.Get("payload"))
	}
	p := forge.ReadPayload(body)
	d := forge.Delivery{ID: forge.DeliveryID(header.Get("X-GitHub-Delivery")), Kind: forge.KindUnknown}
	if !p.IsObject() {
		return d, nil
	}
	d.Kind = kind(header.Get("X-GitHub-Event"))
	d.Repository = p.At("repository", "full_name").Text()
	d.Ref = p.At("ref").Text()
	d.PullRequest = p.At("pull_request", "number").Number()
	if p.At("issue", "pull_request").Given() {
		d.PullRequest = p.At("issue", "number").Number()
	}
	return d, nil
}

func kind(event string) string {
	switch event {
	case "issue_comment", "pull_request_review_comment":
		return forge.KindComment
	case "pull_request_review", "pull_request_review_thread":
		return forge.KindReview
	}
	return forge.Word(event)
}
