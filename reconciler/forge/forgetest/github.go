package forgetest

import (
	"cmp"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// github answers the routes of the API v3, as GitHub Enterprise Server has them.
func (v *server) github() {
	const repo = "/api/v3/repos/{owner}/{name}"
	here := v.inRepository
	v.on("GET "+repo, CallRepository, here(func(r *request) (any, error) {
		p := r.s.repository
		return fields{"id": p.ID, "full_name": p.FullName, "default_branch": p.DefaultBranch, "html_url": p.URL, "archived": p.Archived}, nil
	}))
	v.on("GET /api/v3/user", CallSelf, func(*request) (any, error) { return githubUser(Self), nil })
	v.route("GET "+repo+"/pulls", openOrClosed("open"), here(v.githubPulls))
	v.on("GET "+repo+"/pulls/{number}", CallPullRequest, here(func(r *request) (any, error) {
		p, err := r.s.pull(r.number("number"))
		if err != nil {
			return nil, err
		}
		return githubPull(r.s, p, wholePull), nil
	}))
	v.on("GET "+repo+"/pulls/{number}/files", CallFiles, here(githubFiles))
	v.on("GET "+repo+"/pulls/{number}/reviews", CallReviews, here(githubReviews))
	v.on("GET "+repo+"/issues/{number}/comments", CallComments, here(func(r *request) (any, error) {
		p, err := r.s.pull(r.number("number"))
		if err != nil {
			return nil, err
		}
		return listed(100, p.since(r.since("since")), githubComment), nil
	}))
	v.sameWrites(repo)
	v.on("GET "+repo+"/commits/{ref}/status", CallStatuses, here(func(r *request) (any, error) {
		return combined{list: listed(100, r.s.newest(r.PathValue("ref")), githubStatus)}, nil
	}))
	v.on("GET "+repo+"/collaborators/{user}/permission", CallRole, here(githubRole))
	v.on("GET /api/v3/orgs/{org}/teams/{slug}", CallTeams, func(r *request) (any, error) {
		team := r.PathValue("org") + "/" + r.PathValue("slug")
		if _, ok := r.s.teams[team]; !ok {
			return nil, notFound("")
		}
		return fields{"id": userID(team), "slug": r.PathValue("slug")}, nil
	})
	v.on("GET /api/v3/orgs/{org}/teams/{slug}/memberships/{user}", CallTeams, func(r *request) (any, error) {
		if !slices.Contains(r.s.teams[r.PathValue("org")+"/"+r.PathValue("slug")], r.PathValue("user")) {
			return nil, notFound("")
		}
		return fields{"state": "active", "role": "member"}, nil
	})
	v.on("GET /api/v3/app", CallSelf, v.githubApp)
	v.on("POST /api/v3/app/installations/{installation}/access_tokens", callAppToken, v.githubAppToken)
}

// sameWrites are the routes that Gitea has taken over from GitHub.
func (v *server) sameWrites(repo string) {
	here := v.inRepository
	v.on("POST "+repo+"/issues/{number}/comments", CallComment, here(func(r *request) (any, error) {
		var in struct{ Body string }
		if err := r.decode(&in); err != nil {
			return nil, err
		}
		c, err := v.w.addComment(r.s, r.number("number"), Self, in.Body)
		if _, missing := r.s.pull(r.number("number")); missing != nil && v.dialect == Gitea {
			err = &problem{status: http.StatusInternalServerError, message: ""} // as the real one does
		}
		return githubComment(c), err
	}))
	v.on("PATCH "+repo+"/issues/comments/{id}", CallEditComment, here(func(r *request) (any, error) {
		var in struct{ Body string }
		if err := r.decode(&in); err != nil {
			return nil, err
		}
		c, err := v.w.editComment(r.s, r.id("id"), in.Body)
		return githubComment(c), err
	}))
	v.on("POST "+repo+"/issues/comments/{id}/reactions", CallReact, here(func(r *request) (any, error) {
		var in struct{ Content forge.Sign }
		if err := r.decode(&in); err != nil {
			return nil, err
		}
		_, err := r.s.react(r.id("id"), Self, in.Content)
		return fields{"content": in.Content}, err
	}))
	v.on("POST "+repo+"/statuses/{sha}", CallSetStatus, here(func(r *request) (any, error) {
		var in struct {
			Context, Description string
			State                forge.StatusState
			TargetURL            string `json:"target_url"`
		}
		if err := r.decode(&in); err != nil {
			return nil, err
		}
		if len([]rune(in.Context)) > 255 || len([]rune(in.Description)) > 140 {
			return nil, &problem{status: http.StatusUnprocessableEntity, message: "Validation Failed"}
		}
		row := v.w.addStatus(r.s, r.PathValue("sha"), forge.Status{Context: in.Context, State: in.State, Text: in.Description, URL: in.TargetURL})
		return githubStatus(row), nil
	}))
}

// inRepository lets only calls through that name the world's repository.
func (v *server) inRepository(act func(r *request) (any, error)) func(r *request) (any, error) {
	return func(r *request) (any, error) {
		if r.PathValue("owner")+"/"+r.PathValue("name") != r.s.repository.FullName {
			return nil, notFound("")
		}
		return act(r)
	}
}

// openOrClosed tells which of two calls a list of pull requests serves.
func openOrClosed(open ...string) func(r *http.Request) Call {
	return func(r *http.Request) Call {
		if slices.Contains(open, r.URL.Query().Get("state")) {
			return CallOpen
		}
		return CallClosed
	}
}

func (v *server) githubPulls(r *request) (any, error) {
	q := r.URL.Query()
	var all []*pull
	for _, n := range r.s.numbers() {
		p := r.s.pulls[n]
		if (p.State == forge.IsOpen) == (q.Get("state") == "open") && (q.Get("base") == "" || p.BaseRef == q.Get("base")) {
			all = append(all, p)
		}
	}
	if q.Get("sort") == "updated" {
		slices.SortStableFunc(all, byUpdate)
	}
	return listed(100, all, func(p *pull) fields { return githubPull(r.s, p, listedPull) }), nil
}

// byUpdate orders by the last change, newest first.
func byUpdate(a, b *pull) int {
	return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(b.Number, a.Number))
}

// pullShape is how much of a pull request is told.
type pullShape int

const (
	wholePull  pullShape = iota
	listedPull           // without what is worked out on demand
)

func githubPull(s *state, p *pull, shape pullShape) fields {
	headRepo := s.repository.ID
	if p.Fork {
		headRepo = 99
	}
	state := "open"
	if p.State != forge.IsOpen {
		state = "closed"
	}
	out := fields{
		"number": p.Number, "title": p.Title, "user": githubUser(p.Author), "html_url": p.URL, "state": state, "draft": p.Draft,
		"head":       fields{"sha": p.Head, "ref": p.HeadRef, "repo": fields{"id": headRepo}},
		"base":       fields{"sha": p.Base, "ref": p.BaseRef, "repo": fields{"id": s.repository.ID}},
		"created_at": instant(p.openedAt), "updated_at": instant(p.UpdatedAt), "closed_at": instant(p.ClosedAt),
		"merge_commit_sha": madeUp("a trial merge", p.Head), "merged_at": nil,
	}
	if p.State == forge.IsMerged {
		out["merged_at"], out["merge_commit_sha"] = instant(p.ClosedAt), p.MergeCommit
	}
	if shape == listedPull {
		return out
	}
	out["merged"] = p.State == forge.IsMerged
	switch p.Mergeable {
	case forge.Clean:
		out["mergeable"], out["mergeable_state"] = true, "clean"
	case forge.Conflicting:
		out["mergeable"], out["mergeable_state"] = false, "dirty"
	case forge.Blocked:
		out["mergeable"], out["mergeable_state"] = true, "blocked"
	case forge.Unknown:
		out["mergeable"], out["mergeable_state"] = nil, "unknown"
	}
	return out
}

func githubUser(name string) fields { return fields{"login": name, "id": userID(name)} }

func githubComment(c forge.Comment) fields {
	return fields{
		"id": c.ID, "body": c.Body, "user": githubUser(c.Author), "html_url": c.URL,
		"created_at": instant(c.At), "updated_at": instant(c.UpdatedAt),
	}
}

func githubStatus(row statusRow) fields {
	return fields{"id": row.id, "context": row.Context, "state": row.State, "description": row.Text, "target_url": row.URL, "created_at": instant(row.at)}
}

// combined is the one list of GitHub's that is inside an object.
type combined struct{ list }

func githubFiles(r *request) (any, error) {
	p, err := r.s.pull(r.number("number"))
	if err != nil {
		return nil, err
	}
	return listed(100, p.files, func(path string) fields {
		out := fields{"filename": path, "status": "modified"}
		if old := p.renamed[path]; old != "" {
			out["status"], out["previous_filename"] = "renamed", old
		}
		return out
	}), nil
}

func githubReviews(r *request) (any, error) {
	p, err := r.s.pull(r.number("number"))
	if err != nil {
		return nil, err
	}
	return listed(100, p.reviews, func(row reviewRow) fields {
		state := "CHANGES_REQUESTED"
		if row.approved {
			state = "APPROVED"
		}
		if row.dismissed {
			state = "DISMISSED"
		}
		return fields{"id": row.id, "user": githubUser(row.user), "state": state, "commit_id": row.commit, "submitted_at": instant(row.at)}
	}), nil
}

func githubRole(r *request) (any, error) {
	user := r.PathValue("user")
	role := r.s.roles[user]
	permission := role.String()
	switch role {
	case forge.Triage:
		permission = "read"
	case forge.Maintain:
		permission = "write"
	case forge.None, forge.Read, forge.Write, forge.Admin: // have a permission of their name
	}
	return fields{"permission": permission, "role_name": role.String(), "user": githubUser(user)}, nil
}

// appOf is the App whose key has signed a request's token.
func (v *server) appOf(r *request) (int64, app, error) {
	refused := &problem{status: http.StatusUnauthorized, message: "A JSON web token could not be decoded"}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	dot := strings.LastIndex(token, ".")
	if dot < 0 {
		return 0, app{}, refused
	}
	signature, err := base64.RawURLEncoding.DecodeString(token[dot+1:])
	if err != nil {
		return 0, app{}, refused
	}
	sum := sha256.Sum256([]byte(token[:dot]))
	for installation, a := range v.w.apps {
		if rsa.VerifyPKCS1v15(a.key, crypto.SHA256, sum[:], signature) == nil {
			return installation, a, nil
		}
	}
	return 0, app{}, refused
}

func (v *server) githubApp(r *request) (any, error) {
	_, a, err := v.appOf(r)
	return fields{"id": a.id, "slug": a.slug}, err
}

func (v *server) githubAppToken(r *request) (any, error) {
	installation, a, err := v.appOf(r)
	if err != nil {
		return nil, err
	}
	if installation != r.id("installation") {
		return nil, notFound("")
	}
	a.sent++
	v.w.apps[installation] = a
	return fields{"token": v.w.token, "expires_at": instant(time.Now().Add(time.Hour))}, nil
}
