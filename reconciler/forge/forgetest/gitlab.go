package forgetest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// gitlab answers the routes of the API v4.
func (v *server) gitlab() {
	const project = "/api/v4/projects/{project}"
	here := v.inProject
	v.on("GET "+project, CallRepository, here(func(r *request) (any, error) {
		p := r.s.repository
		return fields{"id": p.ID, "path_with_namespace": p.FullName, "default_branch": p.DefaultBranch, "web_url": p.URL, "archived": p.Archived}, nil
	}))
	v.on("GET /api/v4/user", CallSelf, func(*request) (any, error) { return gitlabUser(Self), nil })
	v.on("GET /api/v4/users", callUser, func(r *request) (any, error) {
		name := r.URL.Query().Get("username")
		return listed(100, slices.DeleteFunc(r.s.users(), func(u string) bool { return u != name }), gitlabUser), nil
	})
	v.route("GET "+project+"/merge_requests", openOrClosed("opened", "locked"), here(gitlabMerges))
	const one = project + "/merge_requests/{number}"
	v.on("GET "+one, CallPullRequest, here(v.onPull(func(r *request, p *pull) (any, error) {
		out := gitlabMerge(r.s, p)
		out["changes_count"] = fmt.Sprint(len(p.files))
		out["diff_refs"] = fields{"start_sha": p.Base, "head_sha": p.Head, "base_sha": madeUp("merge base", p.Base)}
		return out, nil
	})))
	v.on("GET "+one+"/diffs", CallFiles, here(v.onPull(func(_ *request, p *pull) (any, error) {
		return listed(100, p.files, func(path string) fields {
			return fields{"new_path": path, "old_path": cmp.Or(p.renamed[path], path)}
		}), nil
	})))
	v.gitlabReviews(one)
	v.gitlabNotes(one)
	v.gitlabStatuses(project)
	v.on("GET "+project+"/members/all/{user}", CallRole, here(func(r *request) (any, error) {
		return gitlabMember(r, r.s.roles)
	}))
	v.on("GET /api/v4/groups/{group}", CallTeams, func(r *request) (any, error) {
		if _, ok := r.s.teams[r.PathValue("group")]; !ok {
			return nil, notFound("Group ")
		}
		return fields{"id": userID(r.PathValue("group")), "full_path": r.PathValue("group")}, nil
	})
	v.on("GET /api/v4/groups/{group}/members/all/{user}", CallTeams, func(r *request) (any, error) {
		members, ok := r.s.teams[r.PathValue("group")]
		if !ok {
			return nil, notFound("Group ")
		}
		roles := map[string]forge.Role{}
		for _, m := range members {
			roles[m] = forge.Write
		}
		return gitlabMember(r, roles)
	})
}

func (v *server) inProject(act func(r *request) (any, error)) func(r *request) (any, error) {
	return func(r *request) (any, error) {
		if r.PathValue("project") != r.s.repository.FullName {
			return nil, notFound("Project ")
		}
		return act(r)
	}
}

func (v *server) onPull(act func(r *request, p *pull) (any, error)) func(r *request) (any, error) {
	return func(r *request) (any, error) {
		p, err := r.s.pull(r.number("number"))
		if err != nil {
			return nil, err
		}
		return act(r, p)
	}
}

func gitlabMerges(r *request) (any, error) {
	q := r.URL.Query()
	after := r.since("updated_after")
	var all []*pull
	for _, n := range r.s.numbers() {
		p := r.s.pulls[n]
		if p.BaseRef == q.Get("target_branch") && p.UpdatedAt.After(after) && (q.Get("state") == "all" || q.Get("state") == gitlabState(p)) {
			all = append(all, p)
		}
	}
	if q.Get("order_by") == "updated_at" {
		slices.SortStableFunc(all, byUpdate)
	}
	return listed(100, all, func(p *pull) fields { return gitlabMerge(r.s, p) }), nil
}

func gitlabState(p *pull) string {
	if p.State == forge.IsOpen {
		return "opened"
	}
	return string(p.State)
}

func gitlabMerge(s *state, p *pull) fields {
	source := s.repository.ID
	if p.Fork {
		source = 99
	}
	out := fields{
		"iid": p.Number, "title": p.Title, "author": gitlabUser(p.Author), "web_url": p.URL, "state": gitlabState(p), "draft": p.Draft,
		"sha": p.Head, "source_branch": p.HeadRef, "target_branch": p.BaseRef,
		"source_project_id": source, "target_project_id": s.repository.ID,
		"has_conflicts": p.Mergeable == forge.Conflicting, "created_at": instant(p.openedAt), "updated_at": instant(p.UpdatedAt),
		"merge_commit_sha": nil, "merged_at": nil, "closed_at": nil,
	}
	out["detailed_merge_status"] = map[forge.Mergeable]string{
		forge.Clean: "mergeable", forge.Conflicting: "conflict", forge.Blocked: "ci_must_pass", forge.Unknown: "checking",
	}[p.Mergeable]
	switch p.State {
	case forge.IsMerged:
		out["merged_at"], out["merge_commit_sha"] = instant(p.ClosedAt), p.MergeCommit
	case forge.IsClosed:
		out["closed_at"] = instant(p.ClosedAt)
	case forge.IsOpen:
	}
	return out
}

func gitlabUser(name string) fields {
	return fields{"id": userID(name), "username": name, "state": "active"}
}

// gitlabMember is the membership of the user whose id is in the path.
func gitlabMember(r *request, roles map[string]forge.Role) (any, error) {
	for name, role := range roles {
		if userID(name) == r.id("user") && role != forge.None {
			out := gitlabUser(name)
			out["access_level"] = map[forge.Role]int{forge.Read: 10, forge.Triage: 20, forge.Write: 30, forge.Maintain: 40, forge.Admin: 50}[role]
			return out, nil
		}
	}
	return nil, notFound("")
}

// verdicts are the newest review of each user that was not dismissed.
func (p *pull) verdicts() map[string]reviewRow {
	out := map[string]reviewRow{}
	for _, row := range p.reviews {
		if delete(out, row.user); !row.dismissed {
			out[row.user] = row
		}
	}
	return out
}

func (v *server) gitlabReviews(one string) {
	here := v.inProject
	v.on("GET "+one+"/approvals", CallReviews, here(v.onPull(func(_ *request, p *pull) (any, error) {
		by := []fields{}
		for name, row := range p.verdicts() {
			if row.approved {
				by = append(by, fields{"user": gitlabUser(name)})
			}
		}
		return fields{"iid": p.Number, "approved": len(by) > 0, "approved_by": by}, nil
	})))
	v.on("GET "+one+"/reviewers", CallReviews, here(v.onPull(func(_ *request, p *pull) (any, error) {
		out := list{most: 100}
		for name, row := range p.verdicts() {
			if !row.approved {
				out.things = append(out.things, fields{"user": gitlabUser(name), "state": "requested_changes"})
			}
		}
		return out, nil
	})))
	v.on("GET "+one+"/versions", CallReviews, here(v.onPull(func(_ *request, p *pull) (any, error) {
		return listed(100, p.versions, func(ver version) fields {
			return fields{"head_commit_sha": ver.head, "created_at": instant(ver.at)}
		}), nil
	})))
}

// gitlabNote is a comment, or a line of GitLab's own.
func gitlabNote(c forge.Comment, system bool) fields {
	return fields{
		"id": c.ID, "body": c.Body, "author": gitlabUser(c.Author), "system": system,
		"created_at": instant(c.At), "updated_at": instant(c.UpdatedAt),
	}
}

// gitlabTalk is what the notes of a merge request list, newest first: comments, and a
// line for each review.
func gitlabTalk(p *pull) []fields {
	var out []fields
	all := slices.Clone(p.comments)
	for _, row := range p.reviews {
		line := "requested changes"
		if row.approved {
			line = "approved this merge request"
		}
		all = append(all, forge.Comment{ID: -row.id, Author: row.user, Body: line, At: row.at, UpdatedAt: row.at})
	}
	slices.SortStableFunc(all, func(a, b forge.Comment) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	for _, c := range all {
		system := c.ID < 0
		c.ID = max(c.ID, -c.ID)
		out = append(out, gitlabNote(c, system))
	}
	return out
}

func (v *server) gitlabNotes(one string) {
	here := v.inProject
	v.on("GET "+one+"/notes", CallComments, here(v.onPull(func(_ *request, p *pull) (any, error) {
		return listed(100, gitlabTalk(p), func(f fields) fields { return f }), nil
	})))
	v.on("POST "+one+"/notes", CallComment, here(func(r *request) (any, error) {
		var in struct{ Body string }
		if err := r.decode(&in); err != nil {
			return nil, err
		}
		c, err := v.w.addComment(r.s, r.number("number"), Self, in.Body)
		return gitlabNote(c, false), err
	}))
	v.on("PUT "+one+"/notes/{id}", CallEditComment, here(func(r *request) (any, error) {
		var in struct{ Body string }
		if err := r.decode(&in); err != nil {
			return nil, err
		}
		c, err := v.w.editComment(r.s, r.id("id"), in.Body)
		return gitlabNote(c, false), err
	}))
	v.on("POST "+one+"/notes/{id}/award_emoji", CallReact, here(func(r *request) (any, error) {
		var in struct{ Name string }
		if err := r.decode(&in); err != nil {
			return nil, err
		}
		sign, ok := map[string]forge.Sign{"eyes": forge.Seen, "thumbsup": forge.Done, "thumbsdown": forge.Denied}[in.Name]
		if !ok {
			return nil, &problem{status: http.StatusBadRequest, message: "Award Emoji Name is not a valid emoji name"}
		}
		was, err := r.s.react(r.id("id"), Self, sign)
		if err == nil && was {
			err = &problem{status: http.StatusNotFound, message: "Award Emoji Name has already been taken"}
		}
		return fields{"name": in.Name}, err
	}))
}

var gitlabStates = map[string]forge.StatusState{"pending": forge.Pending, "success": forge.Success, "failed": forge.Failure, "canceled": forge.Error}

func gitlabStatus(row statusRow) fields {
	out := fields{"id": row.id, "sha": row.commit, "name": row.Context, "description": row.Text, "target_url": row.URL, "created_at": instant(row.at)}
	for name, state := range gitlabStates {
		if state == row.State {
			out["status"] = name
		}
	}
	return out
}

func (v *server) gitlabStatuses(project string) {
	here := v.inProject
	v.on("GET "+project+"/repository/commits/{sha}/statuses", CallStatuses, here(func(r *request) (any, error) {
		return listed(100, r.s.newest(r.PathValue("sha")), gitlabStatus), nil
	}))
	v.on("POST "+project+"/statuses/{sha}", CallSetStatus, here(func(r *request) (any, error) {
		var in struct {
			State, Name, Description string
			TargetURL                string `json:"target_url"`
		}
		if err := r.decode(&in); err != nil {
			return nil, err
		}
		state, ok := gitlabStates[in.State]
		if !ok || len([]rune(in.Name)) > 255 || len([]rune(in.Description)) > 255 {
			return nil, &problem{status: http.StatusBadRequest, message: "name is too long (maximum is 255 characters)"}
		}
		st := forge.Status{Context: in.Name, State: state, Text: in.Description, URL: in.TargetURL}
		return v.gitlabTransition(r, st)
	}))
}

// gitlabTransition moves a status that is still pending, or begins one. A status cannot
// go to the state that it has; its text is taken all the same.
func (v *server) gitlabTransition(r *request, st forge.Status) (any, error) {
	commit := r.PathValue("sha")
	for i, row := range slices.Backward(r.s.statuses) {
		if row.commit != commit || row.Context != st.Context {
			continue
		}
		if row.State != forge.Pending {
			break
		}
		r.s.statuses[i].Status = st
		if st.State == forge.Pending {
			return nil, &problem{status: http.StatusBadRequest, message: `Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via "enqueue")`}
		}
		return gitlabStatus(r.s.statuses[i]), nil
	}
	if strings.TrimSpace(st.Context) == "" {
		return nil, &problem{status: http.StatusBadRequest, message: "name is missing"}
	}
	return gitlabStatus(v.w.addStatus(r.s, commit, st)), nil
}
