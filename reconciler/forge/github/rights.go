package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v88/github"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

func (a *adaptor) Statuses(ctx context.Context, commit string) ([]forge.Status, error) {
	all, err := rest.Pages(func(page int) ([]*github.RepoStatus, int, error) {
		o := pageOf(page)
		some, resp, err := a.client.Repositories.GetCombinedStatus(ctx, a.owner, a.name, commit, &o)
		if err != nil {
			return nil, 0, err
		}
		return some.Statuses, next(resp), nil
	})
	if err != nil {
		return nil, a.op("list the statuses of commit "+commit, "commit statuses read (classic: repo:status)").Fail(err)
	}
	out := make([]forge.Status, len(all))
	for i, s := range all {
		out[i] = forge.Status{Context: s.GetContext(), State: forge.StatusState(s.GetState()), Text: s.GetDescription(), URL: s.GetTargetURL()}
	}
	return forge.SortStatuses(out), nil
}

func (a *adaptor) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	op := a.op("set a status of commit "+commit, "commit statuses write (classic: repo:status)")
	if err := limits.FitsStatus(op.What, s); err != nil {
		return err
	}
	state := string(s.State)
	_, _, err := a.client.Repositories.CreateStatus(ctx, a.owner, a.name, commit, github.RepoStatus{
		State: &state, Context: &s.Context, Description: &s.Text, TargetURL: &s.URL,
	})
	return op.Fail(err)
}

// Role takes the name of the role, which knows triage and maintain; for a role of the
// organization's own making it is the permission that it is built on.
func (a *adaptor) Role(ctx context.Context, user string) (forge.Role, error) {
	op := a.op("read the role of "+user, "metadata read and to be a member of the repository (classic: repo)")
	p, _, err := a.client.Repositories.GetPermissionLevel(ctx, a.owner, a.name, user)
	if err != nil {
		return forge.None, op.Fail(err)
	}
	for _, name := range []string{p.GetRoleName(), p.GetPermission()} {
		switch name {
		case "admin":
			return forge.Admin, nil
		case "maintain":
			return forge.Maintain, nil
		case "write":
			return forge.Write, nil
		case "triage":
			return forge.Triage, nil
		case "read":
			return forge.Read, nil
		case "none":
			return forge.None, nil
		}
	}
	return forge.None, fmt.Errorf("%s: GitHub names the unknown role %q", op.What, p.GetRoleName())
}

func (a *adaptor) Teams(ctx context.Context, user string, of []string) ([]string, error) {
	var in []string
	for _, team := range of {
		member, err := a.inTeam(ctx, user, team)
		if err != nil {
			return nil, err
		}
		if member {
			in = append(in, team)
		}
	}
	return in, nil
}

func (a *adaptor) inTeam(ctx context.Context, user, team string) (bool, error) {
	op := rest.Op{What: "read whether " + user + " is in the team " + team, Needs: "organization members read (classic: read:org)"}
	org, slug, ok := strings.Cut(team, "/")
	if !ok || org == "" || slug == "" {
		return false, &forge.Refused{What: op.What, Hint: "a team is written organization/slug"}
	}
	m, _, err := a.client.Teams.GetTeamMembershipBySlug(ctx, org, slug, user)
	if err == nil {
		return m.GetState() == "active", nil
	}
	if !rest.Is(err, http.StatusNotFound) {
		return false, op.Fail(err)
	}
	// Not a member, no such team and a team that the token cannot see are one answer;
	// only the first is one to rely on.
	if _, _, teamErr := a.client.Teams.GetTeamBySlug(ctx, org, slug); teamErr != nil {
		return false, op.Fail(teamErr)
	}
	return false, nil
}
