package github_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/github"
)

// newKey makes a key pair; the private one as GitHub hands it out.
func newKey(t *testing.T) (*rsa.PublicKey, []byte) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return &key.PublicKey, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

func appOf(t *testing.T, url string, key func(context.Context) ([]byte, error)) *github.App {
	t.Helper()
	a, err := github.NewApp(github.AppOptions{URL: url, ID: 12, Installation: 34, Key: key})
	require.NoError(t, err)
	return a
}

func TestAGitHubAppReadsAndWritesAsItself(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	public, private := newKey(t)
	w.InstallApp(34, 12, "sluice", public)
	url := w.Serve(t, forgetest.GitHub)
	a := appOf(t, url, func(context.Context) ([]byte, error) { return private, nil })
	f, err := github.New(github.Options{URL: url, Repository: "acme/app", App: a})
	require.NoError(t, err)
	_, err = f.Repository(t.Context())
	require.NoError(t, err)
	number := w.OpenPullRequest(forgetest.Opening{})
	w.Say(number, "sluice[bot]", "the plan")
	w.Say(number, "sluice", "a person who is called like the App")
	all, err := f.Comments(t.Context(), number, time.Time{})
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.True(t, all[0].Bot)
	assert.False(t, all[1].Bot)

	token, err := a.Token(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "token", token, "the same token serves Git over HTTPS")
	assert.Equal(t, 1, w.AppTokens(34), "one token for all of it")

	w.SetToken("after an hour")
	_, err = f.Repository(t.Context())
	require.NoError(t, err, "a token that is not taken any more is asked for anew")
	assert.Equal(t, 2, w.AppTokens(34))
}

func TestAGitHubAppWithAWrongKeyIsRefusedWithAHint(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	public, right := newKey(t)
	_, wrong := newKey(t)
	w.InstallApp(34, 12, "sluice", public)
	key := wrong
	var keyErr error
	a := appOf(t, w.Serve(t, forgetest.GitHub), func(context.Context) ([]byte, error) { return key, keyErr })
	_, err := a.Token(t.Context())
	var refused *forge.Refused
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, 401, refused.Status)
	assert.Contains(t, err.Error(), "installation 34 of the GitHub App 12")

	key = []byte("no key at all")
	_, err = a.Token(t.Context())
	require.ErrorContains(t, err, "none in PEM")
	keyErr = errors.New("permission denied")
	_, err = a.Token(t.Context())
	require.ErrorContains(t, err, "permission denied")
	key, keyErr = right, nil
	_, err = a.Token(t.Context())
	require.NoError(t, err, "the key is read again")
}

func TestAGitHubAppThatIsNotInstalledIsRefusedWithAHint(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	public, private := newKey(t)
	w.InstallApp(99, 12, "sluice", public)
	_, err := appOf(t, w.Serve(t, forgetest.GitHub), func(context.Context) ([]byte, error) { return private, nil }).Token(t.Context())
	var refused *forge.Refused
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, 404, refused.Status)
	assert.Contains(t, refused.Hint, "installed and not suspended")
}
