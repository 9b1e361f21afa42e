// Package github is the adaptor for GitHub and GitHub Enterprise Server. It needs a
// token (classic with the scope repo, or fine-grained) or a GitHub App, with these
// repository rights: metadata read, contents read, pull requests write, issues write,
// commit statuses write; and organization members read where teams have permissions.
package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/google/go-github/v88/github"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

// Options of the adaptor. Exactly one of Token and App is given.
type Options struct {
	URL        string                                    // of GitHub Enterprise Server; empty for github.com
	Repository string                                    // owner/name
	Token      func(ctx context.Context) (string, error) // asked again when it was refused
	App        *App
	// Account is the login under which the token writes, where the token may not ask
	// for it: github-actions[bot] for the token of a workflow. Empty to ask.
	Account string
}

var limits = forge.Limits{Comment: 65536, Context: 255, Description: 140}

type adaptor struct {
	client      *github.Client
	owner, name string
	app         *App

	mu      sync.Mutex
	account string
}

// New makes the adaptor; it does not call GitHub yet.
func New(o Options) (forge.Forge, error) {
	owner, name, err := rest.ParseName(o.Repository)
	if err != nil {
		return nil, err
	}
	if (o.Token == nil) == (o.App == nil) {
		return nil, errors.New("github: give either a token or an App")
	}
	base, err := apiOf(o.URL)
	if err != nil {
		return nil, err
	}
	var tokens rest.Tokens = o.App
	if o.Token != nil {
		tokens = rest.Ask(o.Token)
	}
	api := base.String()
	client, err := github.NewClient(
		github.WithHTTPClient(rest.Client(rest.Options{Base: base, Tokens: tokens, Authorize: authorize})),
		github.WithURLs(&api, &api),
		github.WithUserAgent("sluice"),
		github.WithDisableRateLimitCheck(), // the transport tells limits, with their instant
	)
	if err != nil {
		return nil, err
	}
	return &adaptor{client: client, owner: owner, name: name, app: o.App, account: o.Account}, nil
}

func authorize(header http.Header, token string) { header.Set("Authorization", "Bearer "+token) }

// apiOf is the address of the API for that of the site, with a slash at its end.
func apiOf(site string) (*url.URL, error) {
	base, err := rest.ParseBase(site, "https://api.github.com")
	if err != nil {
		return nil, err
	}
	if site == "" || base.Host == "github.com" {
		return url.Parse("https://api.github.com/")
	}
	return base.JoinPath("api/v3/"), nil
}

func (a *adaptor) op(what, needs string) rest.Op {
	return rest.Op{What: what + " of " + a.owner + "/" + a.name, Needs: needs}
}

func (a *adaptor) Limits() forge.Limits { return limits }

func (a *adaptor) Repository(ctx context.Context) (forge.Repository, error) {
	r, _, err := a.client.Repositories.Get(ctx, a.owner, a.name)
	if err != nil {
		return forge.Repository{}, a.op("read the repository", "metadata read").Fail(err)
	}
	return forge.Repository{
		ID: r.GetID(), FullName: r.GetFullName(), DefaultBranch: r.GetDefaultBranch(),
		URL: r.GetHTMLURL(), Archived: r.GetArchived(),
	}, nil
}

// self is the login under which we write. An App cannot ask who its installation is,
// so it asks who the App is.
func (a *adaptor) self(ctx context.Context) (string, error) {
	a.mu.Lock()
	account := a.account
	a.mu.Unlock()
	if account != "" {
		return account, nil
	}
	op := rest.Op{What: "find out which account the token belongs to", Needs: "to be a user's or an App's; for the token of a workflow set the account to github-actions[bot]"}
	if a.app != nil {
		slug, err := a.app.slug(ctx)
		if err != nil {
			return "", op.Fail(err)
		}
		account = slug + "[bot]"
	} else {
		user, _, err := a.client.Users.Get(ctx, "")
		if err != nil {
			return "", op.Fail(err)
		}
		account = user.GetLogin()
	}
	if account == "" {
		return "", fmt.Errorf("%s: GitHub named none", op.What)
	}
	a.mu.Lock()
	a.account = account
	a.mu.Unlock()
	return account, nil
}
