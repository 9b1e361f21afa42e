package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"gitlab.com/gitlab-org/api/client-go"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

func (a *adaptor) Statuses(ctx context.Context, commit string) ([]forge.Status, error) {
	all, err := rest.Pages(func(n int) ([]*gitlab.CommitStatus, int, error) {
		some, resp, err := a.client.Commits.GetCommitStatuses(a.project, commit, &gitlab.GetCommitStatusesOptions{ListOptions: page(n)}, gitlab.WithContext(ctx))
		return some, next(resp), err
	})
	if err != nil {
		return nil, a.op("list the statuses of commit "+commit, needsRead).Fail(err)
	}
	newest := map[string]*gitlab.CommitStatus{} // one name may stand in several pipelines
	for _, s := range all {
		if old, ok := newest[s.Name]; !ok || s.ID > old.ID {
			newest[s.Name] = s
		}
	}
	out := make([]forge.Status, 0, len(newest))
	for _, s := range newest {
		out = append(out, forge.Status{Context: s.Name, State: stateOf(s.Status), Text: s.Description, URL: s.TargetURL})
	}
	return forge.SortStatuses(out), nil
}

func stateOf(status string) forge.StatusState {
	switch status {
	case "success", "skipped":
		return forge.Success
	case "failed":
		return forge.Failure
	case "canceled", "canceling":
		return forge.Error
	}
	return forge.Pending
}

// buildStates are GitLab's words. It has none for an error that is not a failure;
// canceled is what also stops a merge and reads back as another state.
var buildStates = map[forge.StatusState]gitlab.BuildStateValue{
	forge.Pending: gitlab.Pending, forge.Success: gitlab.Success, forge.Failure: gitlab.Failed, forge.Error: gitlab.Canceled,
}

// SetStatus sets a status. GitLab refuses a transition to the state that a status has,
// after it has taken the new text: when the status then reads as wanted, it is done.
func (a *adaptor) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	op := a.op("set a status of commit "+commit, needsWrite+", and for a protected branch the right to merge into it")
	if err := limits.FitsStatus(op.What, s); err != nil {
		return err
	}
	state, ok := buildStates[s.State]
	if !ok {
		return &forge.Refused{What: op.What, Hint: fmt.Sprintf("there is no state %q", s.State)}
	}
	o := &gitlab.SetCommitStatusOptions{State: state, Name: &s.Context, Description: &s.Text}
	if s.URL != "" {
		o.TargetURL = &s.URL
	}
	_, _, err := a.client.Commits.SetCommitStatus(a.project, commit, o, gitlab.WithContext(ctx))
	if rest.Is(err, http.StatusBadRequest) && strings.Contains(err.Error(), "Cannot transition status") {
		now, readErr := a.Statuses(ctx, commit)
		if readErr != nil {
			return readErr
		}
		for _, is := range now {
			if is.Context == s.Context && is.State == s.State {
				return nil
			}
		}
	}
	return op.Fail(err)
}

// Role is that of a member of the project, by whatever group. Blocked and awaited
// members have none.
func (a *adaptor) Role(ctx context.Context, user string) (forge.Role, error) {
	op := a.op("read the role of "+user, needsRead)
	id, err := a.userID(ctx, op, user)
	if err != nil {
		return forge.None, err
	}
	m, _, err := a.client.ProjectMembers.GetInheritedProjectMember(a.project, id, gitlab.WithContext(ctx))
	if rest.Is(err, http.StatusNotFound) {
		// No member, or no project that the token can see; only the first is an answer.
		if _, projectErr := a.Repository(ctx); projectErr != nil {
			return forge.None, op.Fail(projectErr)
		}
		return forge.None, nil
	}
	if err != nil {
		return forge.None, op.Fail(err)
	}
	return roleOf(m.AccessLevel, m.State), nil
}

func roleOf(level gitlab.AccessLevelValue, state string) forge.Role {
	switch {
	case state != "active":
		return forge.None
	case level >= gitlab.OwnerPermissions:
		return forge.Admin
	case level >= gitlab.MaintainerPermissions:
		return forge.Maintain
	case level >= gitlab.DeveloperPermissions:
		return forge.Write
	case level >= gitlab.ReporterPermissions:
		return forge.Triage
	case level >= gitlab.GuestPermissions:
		return forge.Read
	}
	return forge.None
}

// userID looks a user up by the exact name.
func (a *adaptor) userID(ctx context.Context, op rest.Op, name string) (int64, error) {
	users, _, err := a.client.Users.ListUsers(&gitlab.ListUsersOptions{Username: &name}, gitlab.WithContext(ctx))
	if err != nil {
		return 0, op.Fail(err)
	}
	for _, u := range users {
		if strings.EqualFold(u.Username, name) {
			return u.ID, nil
		}
	}
	return 0, &forge.Refused{Status: http.StatusNotFound, What: op.What, Hint: "GitLab has no such user, or the token may not see it"}
}

// Teams are groups: one is a member directly or through a group above.
func (a *adaptor) Teams(ctx context.Context, user string, of []string) ([]string, error) {
	if len(of) == 0 {
		return nil, nil
	}
	op := rest.Op{What: "read the groups of " + user, Needs: "the scope api or read_api, and to be a member of the groups"}
	id, err := a.userID(ctx, op, user)
	if err != nil {
		return nil, err
	}
	var in []string
	for _, group := range of {
		op := rest.Op{What: "read whether " + user + " is in the group " + group, Needs: op.Needs}
		m, _, err := a.client.GroupMembers.GetInheritedGroupMember(group, id, gitlab.WithContext(ctx))
		switch {
		case err == nil && m.State == "active" && m.AccessLevel >= gitlab.GuestPermissions:
			in = append(in, group)
		case rest.Is(err, http.StatusNotFound):
			if _, _, groupErr := a.client.Groups.GetGroup(group, nil, gitlab.WithContext(ctx)); groupErr != nil {
				return nil, op.Fail(groupErr)
			}
		case err != nil:
			return nil, op.Fail(err)
		}
	}
	return in, nil
}
