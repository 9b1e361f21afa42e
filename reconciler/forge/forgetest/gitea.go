package forgetest

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// giteaPage is the most that Gitea gives a page unless it is set up otherwise.
const giteaPage = 50

// gitea answers the routes of the API v1, which follows GitHub's shapes with its own
// words and pages.
func (v *server) gitea() {
	const repo = "/api/v1/repos/{owner}/{name}"
	here := v.inRepository
	v.on("GET "+repo, CallRepository, here(func(r *request) (any, error) {
		p := r.s.repository
		return fields{"id": p.ID, "full_name": p.FullName, "default_branch": p.DefaultBranch, "html_url": p.URL, "archived": p.Archived}, nil
	}))
	v.on("GET /api/v1/user", CallSelf, func(*request) (any, error) { return githubUser(Self), nil })
	v.route("GET "+repo+"/pulls", openOrClosed("open"), here(giteaPulls))
	v.on("GET "+repo+"/pulls/{number}", CallPullRequest, here(v.onPull(func(r *request, p *pull) (any, error) {
		return giteaPull(r.s, p), nil
	})))
	v.on("GET "+repo+"/pulls/{number}/files", CallFiles, here(func(r *request) (any, error) { return giteaSized(githubFiles(r)) }))
	v.on("GET "+repo+"/pulls/{number}/reviews", CallReviews, here(v.onPull(func(_ *request, p *pull) (any, error) {
		return listed(giteaPage, p.reviews, func(row reviewRow) fields {
			state := "REQUEST_CHANGES"
			if row.approved {
				state = "APPROVED"
			}
			return fields{"id": row.id, "user": githubUser(row.user), "state": state, "commit_id": row.commit, "dismissed": row.dismissed, "submitted_at": instant(row.at)}
		}), nil
	})))
	v.on("GET "+repo+"/issues/{number}/comments", CallComments, here(v.onPull(func(r *request, p *pull) (any, error) {
		out := listed(giteaPage, p.since(r.since("since")), githubComment)
		out.whole = true // these alone come without pages
		return out, nil
	})))
	v.on("GET "+repo+"/commits/{ref}/statuses", CallStatuses, here(func(r *request) (any, error) {
		var all []statusRow
		for _, row := range r.s.statuses {
			if row.commit == r.PathValue("ref") {
				all = append(all, row)
			}
		}
		slices.Reverse(all)
		return listed(giteaPage, all, giteaStatus), nil
	}))
	v.sameWrites(repo)
	v.giteaRights(repo)
}

// giteaSized is a list with Gitea's bound.
func giteaSized(answer any, err error) (any, error) {
	if l, ok := answer.(list); ok {
		l.most = giteaPage
		return l, err
	}
	return answer, err
}

func giteaPulls(r *request) (any, error) {
	q := r.URL.Query()
	var all []*pull
	for _, n := range r.s.numbers() {
		if p := r.s.pulls[n]; (p.State == forge.IsOpen) == (q.Get("state") == "open") {
			all = append(all, p)
		}
	}
	if q.Get("sort") == "recentupdate" {
		slices.SortStableFunc(all, byUpdate)
	}
	return listed(giteaPage, all, func(p *pull) fields { return giteaPull(r.s, p) }), nil
}

func giteaPull(s *state, p *pull) fields {
	out := githubPull(s, p, wholePull)
	headRepo := s.repository.ID
	if p.Fork {
		headRepo = 99
	}
	out["head"] = fields{"sha": p.Head, "ref": p.HeadRef, "repo_id": headRepo}
	out["base"] = fields{"sha": p.Base, "ref": p.BaseRef, "repo_id": s.repository.ID}
	out["mergeable"] = p.Mergeable == forge.Clean
	delete(out, "mergeable_state")
	if p.State != forge.IsMerged {
		out["merge_commit_sha"] = nil
	}
	return out
}

func giteaStatus(row statusRow) fields {
	out := githubStatus(row)
	out["status"] = out["state"]
	delete(out, "state")
	return out
}

func (v *server) giteaRights(repo string) {
	v.on("GET "+repo+"/collaborators/{user}/permission", CallRole, v.inRepository(func(r *request) (any, error) {
		user := r.PathValue("user")
		if !slices.Contains(r.s.users(), user) {
			return nil, &problem{status: http.StatusNotFound, message: "user does not exist [name: " + user + "]"}
		}
		permission := map[forge.Role]string{
			forge.None: "none", forge.Read: "read", forge.Triage: "read", forge.Write: "write", forge.Maintain: "write", forge.Admin: "admin",
		}[r.s.roles[user]]
		return fields{"permission": permission, "role_name": permission, "user": githubUser(user)}, nil
	}))
	v.on("GET /api/v1/orgs/{org}/teams", CallTeams, func(r *request) (any, error) {
		var names []string
		for _, team := range slices.Sorted(maps.Keys(r.s.teams)) {
			if org, name, _ := strings.Cut(team, "/"); org == r.PathValue("org") {
				names = append(names, name)
			}
		}
		return listed(giteaPage, names, func(name string) fields {
			return fields{"id": userID(r.PathValue("org") + "/" + name), "name": name}
		}), nil
	})
	v.on("GET /api/v1/teams/{team}/members/{user}", CallTeams, func(r *request) (any, error) {
		for team, members := range r.s.teams {
			if userID(team) == r.id("team") && slices.Contains(members, r.PathValue("user")) {
				return githubUser(r.PathValue("user")), nil
			}
		}
		return nil, notFound("")
	})
}
