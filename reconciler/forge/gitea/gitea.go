// Package gitea is the adaptor for Gitea and Forgejo. It needs a token with the scopes
// write:issue, write:repository and read:user, of an account that is administrator of
// the repository where roles are asked for; and read:organization, of an owner of the
// organization or a member of the teams, where teams have permissions.
package gitea

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"code.gitea.io/sdk/gitea"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

// Options of the adaptor.
type Options struct {
	URL        string                                    // base address; required
	Repository string                                    // owner/name
	Token      func(ctx context.Context) (string, error) // asked again when it was refused
}

// Gitea keeps comments and texts of whatever length; these are what pages still show.
var limits = forge.Limits{Comment: 65536, Context: 255, Description: 255}

type adaptor struct {
	url         string
	http        *http.Client
	owner, name string

	mu     sync.Mutex
	selfID int64
}

// New makes the adaptor; it does not call the forge yet.
func New(o Options) (forge.Forge, error) {
	owner, name, err := rest.ParseName(o.Repository)
	if err != nil {
		return nil, err
	}
	if o.URL == "" || o.Token == nil {
		return nil, errors.New("gitea: the forge's address and a token are needed")
	}
	base, err := rest.ParseBase(o.URL, "")
	if err != nil {
		return nil, err
	}
	return &adaptor{
		url: base.String(), owner: owner, name: name,
		http: rest.Client(rest.Options{Base: base, Tokens: rest.Ask(o.Token), Authorize: authorize}),
	}, nil
}

func authorize(header http.Header, token string) { header.Set("Authorization", "token "+token) }

// client is one for a single call, since the library keeps the context in it.
func (a *adaptor) client(ctx context.Context) (*gitea.Client, error) {
	return gitea.NewClient(a.url, gitea.SetContext(ctx), gitea.SetHTTPClient(a.http), gitea.SetUserAgent("sluice"),
		gitea.SetGiteaVersion("")) // Forgejo counts otherwise; what is called here is in all that are maintained
}

func (a *adaptor) op(what, needs string) rest.Op {
	return rest.Op{What: what + " of " + a.owner + "/" + a.name, Needs: needs}
}

func (a *adaptor) Limits() forge.Limits { return limits }

func (a *adaptor) Repository(ctx context.Context) (forge.Repository, error) {
	r, err := call(a, ctx, func(c *gitea.Client) (*gitea.Repository, error) {
		r, _, err := c.GetRepo(a.owner, a.name)
		return r, err
	})
	if err != nil {
		return forge.Repository{}, a.op("read the repository", needsRead).Fail(err)
	}
	return forge.Repository{ID: r.ID, FullName: r.FullName, DefaultBranch: r.DefaultBranch, URL: r.HTMLURL, Archived: r.Archived}, nil
}

// self is the id of the user that the token belongs to.
func (a *adaptor) self(ctx context.Context) (int64, error) {
	a.mu.Lock()
	id := a.selfID
	a.mu.Unlock()
	if id != 0 {
		return id, nil
	}
	user, err := call(a, ctx, func(c *gitea.Client) (*gitea.User, error) {
		u, _, err := c.GetMyUserInfo()
		return u, err
	})
	if err != nil {
		return 0, rest.Op{What: "find out which account the token belongs to", Needs: "the scope read:user"}.Fail(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.selfID = user.ID
	return user.ID, nil
}

const (
	needsRead   = "the scope read:repository"
	needsIssues = "the scope write:issue and write access to the repository"
)

// call asks with a client for one context.
func call[T any](a *adaptor, ctx context.Context, do func(c *gitea.Client) (T, error)) (T, error) {
	c, err := a.client(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return do(c)
}

// pages reads a list to its end; the forge gives 50 a page or less, whatever is asked.
func pages[T any](a *adaptor, ctx context.Context, read func(c *gitea.Client, o gitea.ListOptions) ([]T, *gitea.Response, error)) ([]T, error) {
	c, err := a.client(ctx)
	if err != nil {
		return nil, err
	}
	return rest.Pages(func(page int) ([]T, int, error) {
		some, resp, err := read(c, gitea.ListOptions{Page: page, PageSize: rest.PerPage})
		if err != nil || resp == nil {
			return nil, 0, err
		}
		return some, resp.NextPage, nil
	})
}

// errStop ends a list early.
var errStop = errors.New("enough of the list")
