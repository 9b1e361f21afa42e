// Package gitlab is the adaptor for GitLab. It needs a project, group or personal
// access token with the scope api and the role Developer or higher.
package gitlab

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"gitlab.com/gitlab-org/api/client-go"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

// Options of the adaptor.
type Options struct {
	URL        string                                    // of a self-managed GitLab; empty for gitlab.com
	Repository string                                    // path of the project, of any depth
	Token      func(ctx context.Context) (string, error) // asked again when it was refused
}

// GitLab takes a million bytes of a note; 250,000 characters fit in whatever script.
var limits = forge.Limits{Comment: 250_000, Context: 255, Description: 255}

type adaptor struct {
	client  *gitlab.Client
	project string

	mu     sync.Mutex
	selfID int64
}

// New makes the adaptor; it does not call GitLab yet.
func New(o Options) (forge.Forge, error) {
	if !strings.Contains(strings.Trim(o.Repository, "/"), "/") || strings.Trim(o.Repository, "/") != o.Repository {
		return nil, errors.New("gitlab: the repository must be the path of a project, group/name")
	}
	if o.Token == nil {
		return nil, errors.New("gitlab: a token is needed")
	}
	base, err := rest.ParseBase(o.URL, "https://gitlab.com")
	if err != nil {
		return nil, err
	}
	client, err := gitlab.NewAuthSourceClient(gitlab.Unauthenticated{}, // the transport authorizes
		gitlab.WithBaseURL(base.String()),
		gitlab.WithHTTPClient(rest.Client(rest.Options{Base: base, Tokens: rest.Ask(o.Token), Authorize: authorize})),
		gitlab.WithoutRetries(),
		gitlab.WithCustomLimiter(unlimited{}),
		gitlab.WithUserAgent("sluice"),
	)
	if err != nil {
		return nil, err
	}
	return &adaptor{client: client, project: o.Repository}, nil
}

// authorize sends a token as GitLab's own; those of OAuth are taken there as well.
func authorize(header http.Header, token string) { header.Set("Authorization", "Bearer "+token) }

// unlimited leaves rates to the caller, which sees all repositories of a host.
type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

func (a *adaptor) op(what, needs string) rest.Op {
	return rest.Op{What: what + " of " + a.project, Needs: needs}
}

func (a *adaptor) Limits() forge.Limits { return limits }

func (a *adaptor) Repository(ctx context.Context) (forge.Repository, error) {
	p, _, err := a.client.Projects.GetProject(a.project, nil, gitlab.WithContext(ctx))
	if err != nil {
		return forge.Repository{}, a.op("read the project", needsRead).Fail(err)
	}
	return forge.Repository{ID: p.ID, FullName: p.PathWithNamespace, DefaultBranch: p.DefaultBranch, URL: p.WebURL, Archived: p.Archived}, nil
}

// self is the id of the user that the token belongs to; a project's token has one of
// its own.
func (a *adaptor) self(ctx context.Context) (int64, error) {
	a.mu.Lock()
	id := a.selfID
	a.mu.Unlock()
	if id != 0 {
		return id, nil
	}
	user, _, err := a.client.Users.CurrentUser(gitlab.WithContext(ctx))
	if err != nil {
		return 0, rest.Op{What: "find out which account the token belongs to", Needs: "the scope api or read_user"}.Fail(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.selfID = user.ID
	return user.ID, nil
}

const (
	needsRead  = "the scope api and the role Reporter or higher"
	needsWrite = "the scope api and the role Developer or higher"
)

func page(n int) gitlab.ListOptions {
	return gitlab.ListOptions{Page: int64(n), PerPage: rest.PerPage}
}

func next(resp *gitlab.Response) int {
	if resp == nil {
		return 0
	}
	return int(resp.NextPage)
}
