package gitea

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

func (a *adaptor) Statuses(ctx context.Context, commit string) ([]forge.Status, error) {
	all, err := pages(a, ctx, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.Status, *gitea.Response, error) {
		return c.ListStatuses(a.owner, a.name, commit, gitea.ListStatusesOption{ListOptions: o})
	})
	if err != nil {
		return nil, a.op("list the statuses of commit "+commit, needsRead).Fail(err)
	}
	// The list is the whole history; ids rise.
	slices.SortFunc(all, func(a, b *gitea.Status) int { return int(b.ID - a.ID) })
	out := make([]forge.Status, len(all))
	for i, s := range all {
		out[i] = forge.Status{Context: s.Context, State: stateOf(s.State), Text: s.Description, URL: s.TargetURL}
	}
	return forge.SortStatuses(out), nil
}

func stateOf(state gitea.StatusState) forge.StatusState {
	switch state {
	case gitea.StatusSuccess:
		return forge.Success
	case gitea.StatusFailure:
		return forge.Failure
	case gitea.StatusPending:
		return forge.Pending
	case gitea.StatusError, gitea.StatusWarning:
		return forge.Error
	}
	return forge.Error
}

func (a *adaptor) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	op := a.op("set a status of commit "+commit, "the scope write:repository and write access to the repository")
	if err := limits.FitsStatus(op.What, s); err != nil {
		return err
	}
	_, err := call(a, ctx, func(c *gitea.Client) (*gitea.Status, error) {
		set, _, err := c.CreateStatus(a.owner, a.name, commit, gitea.CreateStatusOption{
			State: gitea.StatusState(s.State), Context: s.Context, Description: s.Text, TargetURL: s.URL,
		})
		return set, err
	})
	return op.Fail(err)
}

func (a *adaptor) Role(ctx context.Context, user string) (forge.Role, error) {
	op := a.op("read the role of "+user, "the scope read:repository and to be of an administrator of the repository")
	p, err := call(a, ctx, func(c *gitea.Client) (*gitea.CollaboratorPermissionResult, error) {
		p, _, err := c.CollaboratorPermission(a.owner, a.name, user)
		return p, err
	})
	if err != nil {
		return forge.None, op.Fail(err)
	}
	switch {
	case p == nil:
		return forge.None, fmt.Errorf("%s: the forge gave no answer", op.What)
	case p.Permission == gitea.AccessModeOwner || p.Permission == gitea.AccessModeAdmin:
		return forge.Admin, nil
	case p.Permission == gitea.AccessModeWrite:
		return forge.Write, nil
	case p.Permission == gitea.AccessModeRead:
		return forge.Read, nil
	case p.Permission == gitea.AccessModeNone:
		return forge.None, nil
	}
	return forge.None, fmt.Errorf("%s: the forge names the unknown permission %q", op.What, p.Permission)
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
	op := rest.Op{What: "read whether " + user + " is in the team " + team, Needs: "the scope read:organization, of an owner of the organization or a member of that team"}
	org, name, ok := strings.Cut(team, "/")
	if !ok || org == "" || name == "" {
		return false, &forge.Refused{What: op.What, Hint: "a team is written organization/name"}
	}
	teams, err := pages(a, ctx, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.Team, *gitea.Response, error) {
		return c.ListOrgTeams(org, gitea.ListTeamsOptions{ListOptions: o})
	})
	if err != nil {
		return false, op.Fail(err)
	}
	at := slices.IndexFunc(teams, func(t *gitea.Team) bool { return strings.EqualFold(t.Name, name) })
	if at < 0 {
		return false, &forge.Refused{Status: http.StatusNotFound, What: op.What, Hint: "the organization has no such team"}
	}
	_, err = call(a, ctx, func(c *gitea.Client) (*gitea.User, error) {
		u, _, err := c.GetTeamMember(teams[at].ID, user)
		return u, err
	})
	if rest.Is(err, http.StatusNotFound) {
		return false, nil // the team is there: it is the member that is not
	}
	return err == nil, op.Fail(err)
}
