package forgetest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Dialect is how a forge speaks.
type Dialect string

// The dialects.
const (
	GitHub Dialect = "github"
	GitLab Dialect = "gitlab"
	Gitea  Dialect = "gitea"
)

type subscription struct {
	dialect Dialect
	secret  []byte
	path    string
	to      http.Handler
}

// Subscribe sends webhooks of a dialect to a handler, at a path, signed with a secret.
// The script's call returns when the handler has answered.
func (w *World) Subscribe(d Dialect, secret []byte, path string, to http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.subs = append(w.subs, subscription{dialect: d, secret: secret, path: path, to: to})
}

// LoseWebhooks loses the next so many events.
func (w *World) LoseWebhooks(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose += n
}

// DoubleWebhooks sends the next so many events twice, with the same ids.
func (w *World) DoubleWebhooks(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.double += n
}

// Webhook is a request as a forge of a dialect sends it: about a kind of event (opened,
// synchronize, merged, closed, comment, review, push), signed with a secret.
func Webhook(d Dialect, secret []byte, path, id, kind, repository string, pr forge.PullRequest) *http.Request {
	event, payload := eventOf(d, kind, repository, pr)
	body, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	r := Sign(d, secret, path, id, body)
	switch d {
	case GitHub:
		r.Header.Set("X-GitHub-Event", event)
	case GitLab:
		r.Header.Set("X-Gitlab-Event", event)
	case Gitea:
		r.Header.Set("X-Gitea-Event", event)
	}
	return r
}

// Sign is a request with whatever body, signed as a forge of a dialect does.
func Sign(d Dialect, secret []byte, path, id string, body []byte) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	sum := hex.EncodeToString(mac.Sum(nil))
	switch d {
	case GitHub:
		r.Header.Set("X-GitHub-Delivery", id)
		r.Header.Set("X-Hub-Signature-256", "sha256="+sum)
	case GitLab:
		r.Header.Set("Idempotency-Key", id)
		r.Header.Set("X-Gitlab-Token", string(secret))
	case Gitea:
		r.Header.Set("X-Gitea-Delivery", id)
		r.Header.Set("X-Gitea-Signature", sum)
		r.Header.Set("X-Hub-Signature-256", "sha256="+sum)
	}
	return r
}

// fields is a JSON object.
type fields map[string]any

func eventOf(d Dialect, kind, repository string, pr forge.PullRequest) (string, fields) {
	if d == GitLab {
		return gitlabEvent(kind, repository, pr)
	}
	payload := fields{"repository": fields{"full_name": repository}, "action": kind}
	pull := fields{"number": pr.Number, "head": fields{"sha": pr.Head, "ref": pr.HeadRef}, "base": fields{"ref": pr.BaseRef}}
	switch kind {
	case "push":
		payload["ref"] = "refs/heads/" + pr.BaseRef
		payload["after"] = pr.MergeCommit
		return "push", payload
	case "comment":
		payload["action"] = "created"
		payload["issue"] = fields{"number": pr.Number, "pull_request": fields{"url": pr.URL}}
		return "issue_comment", payload
	case "review":
		payload["pull_request"] = pull
		if d == Gitea {
			return "pull_request_approved", payload
		}
		return "pull_request_review", payload
	case "merged":
		payload["action"] = "closed"
	}
	payload["pull_request"] = pull
	return "pull_request", payload
}

func gitlabEvent(kind, repository string, pr forge.PullRequest) (string, fields) {
	payload := fields{"project": fields{"path_with_namespace": repository}}
	switch kind {
	case "push":
		payload["object_kind"], payload["ref"], payload["after"] = "push", "refs/heads/"+pr.BaseRef, pr.MergeCommit
		return "Push Hook", payload
	case "comment":
		payload["object_kind"], payload["merge_request"] = "note", fields{"iid": pr.Number}
		return "Note Hook", payload
	}
	action := map[string]string{"opened": "open", "closed": "close", "merged": "merge", "reopened": "reopen", "review": "approved"}[kind]
	if action == "" {
		action = "update"
	}
	payload["object_kind"], payload["object_attributes"] = "merge_request", fields{"iid": pr.Number, "action": action}
	return "Merge Request Hook", payload
}

// event is one delivery to one subscriber.
type event struct {
	to      subscription
	request func() *http.Request
}

// events are what the forge sends about a change, with losses and doubles; it is called
// under the lock and send after it, since a handler may ask the world.
func (w *World) events(kind string, p *pull) []event {
	kinds := []string{kind}
	if kind == "merged" {
		kinds = append(kinds, "push")
	}
	var out []event
	for _, kind := range kinds {
		w.sent++
		copies := 1
		if w.lose > 0 {
			w.lose--
			copies = 0
		} else if w.double > 0 {
			w.double--
			copies = 2
		}
		for n, sub := range w.subs {
			id, pr, name := fmt.Sprintf("delivery-%d-%d", w.sent, n), p.PullRequest, w.state.repository.FullName
			for range copies {
				out = append(out, event{to: sub, request: func() *http.Request {
					return Webhook(sub.dialect, sub.secret, sub.path, id, kind, name, pr)
				}})
			}
		}
	}
	return out
}

func (w *World) send(events []event) {
	for _, e := range events {
		e.to.to.ServeHTTP(httptest.NewRecorder(), e.request())
	}
}
