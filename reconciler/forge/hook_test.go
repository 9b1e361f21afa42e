package forge_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

func TestWebhooksOfAllForgesSayTheSame(t *testing.T) {
	pr := forge.PullRequest{Number: 7, BaseRef: "main"}
	for _, d := range []forgetest.Dialect{forgetest.GitHub, forgetest.GitLab, forgetest.Gitea} {
		for kind, want := range map[string]forge.Delivery{
			"opened":      {Kind: forge.KindPullRequest, PullRequest: 7},
			"synchronize": {Kind: forge.KindPullRequest, PullRequest: 7},
			"merged":      {Kind: forge.KindPullRequest, PullRequest: 7},
			"comment":     {Kind: forge.KindComment, PullRequest: 7},
			"review":      {Kind: forge.KindReview, PullRequest: 7},
			"push":        {Kind: forge.KindPush, Ref: "refs/heads/main"},
		} {
			want.ID, want.Repository = "id", "acme/app"
			r := forgetest.Webhook(d, []byte("s3cret"), "/", "id", kind, "acme/app", pr)
			got, err := hooks[string(d)].Delivery(r.Header, bodyOf(t, r))
			require.NoError(t, err, "%s %s", d, kind)
			assert.Equal(t, want, got, "%s %s", d, kind)
		}
	}
}

// FuzzHooks sends signed bodies of whatever content: no field may be longer than a name,
// and nothing may panic.
func FuzzHooks(f *testing.F) {
	for _, d := range []forgetest.Dialect{forgetest.GitHub, forgetest.GitLab, forgetest.Gitea} {
		for _, kind := range []string{"opened", "comment", "review", "push"} {
			r := forgetest.Webhook(d, []byte("s3cret"), "/", "id", kind, "acme/app", forge.PullRequest{Number: 7})
			f.Add(string(d), r.Header.Get("X-GitHub-Event"), bodyOf(f, r))
		}
	}
	f.Add("github", "push", []byte(`{"ref":{"ref":1},"repository":[]}`))
	f.Add("gitlab", "", []byte(`{"object_kind":"note","merge_request":{"iid":-1}}`))
	f.Fuzz(func(t *testing.T, dialect, event string, body []byte) {
		hook, ok := hooks[dialect]
		if !ok {
			return
		}
		r := forgetest.Sign(forgetest.Dialect(dialect), []byte("s3cret"), "/", "id", body)
		r.Header["X-Github-Event"], r.Header["X-Gitea-Event"] = []string{event}, []string{event}
		d, err := hook.Delivery(r.Header, body)
		if err != nil {
			t.Fatalf("a right signature was refused: %v", err)
		}
		if len(d.Repository) > 512 || len(d.Ref) > 512 || len(d.Kind) > 40 || d.Kind == "" || d.PullRequest < 0 {
			t.Fatalf("%+v", d)
		}
		if len(body) > 0 {
			body[0] ^= 1
		}
		var bad *forge.BadSignature
		if _, err := hook.Delivery(http.Header{}, body); !errors.As(err, &bad) {
			t.Fatalf("without a signature: %v", err)
		}
		if dialect == "gitlab" {
			return // its plain token does not depend on the body
		}
		if _, err := hook.Delivery(r.Header, body); len(body) > 0 && !errors.As(err, &bad) {
			t.Fatalf("with another body: %v", err)
		}
	})
}
