package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v88/github"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

// AppOptions name an installation of a GitHub App.
type AppOptions struct {
	URL          string // of GitHub Enterprise Server; empty for github.com
	ID           int64
	Installation int64
	Key          func(ctx context.Context) ([]byte, error) // private key, PEM; asked again when it was refused
}

// App gives the installation's tokens, which last an hour, to the API and to Git over
// HTTPS, where the user name is x-access-token. It is safe for concurrent use.
type App struct {
	o      AppOptions
	api    string
	client *http.Client

	mu       sync.Mutex
	signer   *ghinstallation.AppsTransport
	tokens   *ghinstallation.Transport
	handed   string
	slugName string
}

// NewApp makes an App; it does not call GitHub and does not read the key yet.
func NewApp(o AppOptions) (*App, error) {
	if o.ID <= 0 || o.Installation <= 0 || o.Key == nil {
		return nil, fmt.Errorf("github: an App needs its id, the id of its installation and its private key")
	}
	base, err := apiOf(o.URL)
	if err != nil {
		return nil, err
	}
	return &App{o: o, api: strings.TrimSuffix(base.String(), "/"), client: rest.Client(rest.Options{Base: base})}, nil
}

// Token is the installation's token; it is asked for anew before it expires and after
// it was refused.
func (a *App) Token(ctx context.Context) (string, error) {
	tokens, err := a.transport(ctx)
	if err != nil {
		return "", err
	}
	token, err := tokens.Token(ctx)
	if err != nil {
		op := rest.Op{
			What:  fmt.Sprintf("get a token for installation %d of the GitHub App %d", a.o.Installation, a.o.ID),
			Needs: "to be that App's private key, and the App to be installed and not suspended",
		}
		a.drop()
		return "", op.Fail(err)
	}
	a.mu.Lock()
	a.handed = token
	a.mu.Unlock()
	return token, nil
}

// Refused tells that a token was refused; the next one is fresh.
func (a *App) Refused(token string) {
	a.mu.Lock()
	current := a.handed == token
	a.mu.Unlock()
	if current {
		a.drop()
	}
}

// drop forgets token and key, so that both are had anew.
func (a *App) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens, a.signer, a.handed = nil, nil, ""
}

// transport reads the key where there is none.
func (a *App) transport(ctx context.Context) (*ghinstallation.Transport, error) {
	a.mu.Lock()
	tokens := a.tokens
	a.mu.Unlock()
	if tokens != nil {
		return tokens, nil
	}
	key, err := a.o.Key(ctx)
	if err != nil {
		return nil, fmt.Errorf("the private key of the GitHub App cannot be read: %w", err)
	}
	signer, err := ghinstallation.NewAppsTransport(a.client.Transport, a.o.ID, key)
	if err != nil {
		return nil, fmt.Errorf("the private key of the GitHub App %d is none in PEM: %w", a.o.ID, err)
	}
	signer.BaseURL = a.api
	tokens = ghinstallation.NewFromAppsTransport(signer, a.o.Installation)
	tokens.BaseURL = a.api
	tokens.Client = a.client
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tokens == nil {
		a.tokens, a.signer = tokens, signer
	}
	return a.tokens, nil
}

// slug is the App's name in its account, slug[bot].
func (a *App) slug(ctx context.Context) (string, error) {
	if _, err := a.transport(ctx); err != nil {
		return "", err
	}
	a.mu.Lock()
	known, signer := a.slugName, a.signer
	a.mu.Unlock()
	if known != "" {
		return known, nil
	}
	api := a.api + "/"
	client, err := github.NewClient(
		github.WithHTTPClient(&http.Client{Transport: signer, Timeout: rest.Timeout}),
		github.WithURLs(&api, &api), github.WithDisableRateLimitCheck(),
	)
	if err != nil {
		return "", err
	}
	app, _, err := client.Apps.Get(ctx, "")
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slugName = app.GetSlug()
	if a.slugName == "" {
		return "", fmt.Errorf("GitHub does not name the App %d", a.o.ID)
	}
	return a.slugName, nil
}
