package gitsource_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

func TestOptionsThatAreRefused(t *testing.T) {
	key := gitsource.Auth{SSH: &gitsource.SSH{Key: fixed("x"), KnownHosts: []byte("h ssh-ed25519 AAAA")}}
	for name, c := range map[string]struct {
		options gitsource.Options
		says    string
	}{
		"no URL":                   {gitsource.Options{}, "needs a URL"},
		"password in the URL":      {gitsource.Options{URL: "https://ada:s3cret@example.com/a.git"}, "https://example.com/a.git has a user or password in it"},
		"token as user of the URL": {gitsource.Options{URL: "https://s3cret@example.com/a.git"}, "https://example.com/a.git has a user or password in it"},
		"password of SSH":          {gitsource.Options{URL: "ssh://git:s3cret@example.com/a.git", Auth: key}, "has a user or password in it"},
		"URL that cannot be read":  {gitsource.Options{URL: "https://ada:s3cret@exa mple.com:port/a.git"}, ""},
		"local path":               {gitsource.Options{URL: "/srv/git/a.git"}, "/srv/git/a.git is a path of this machine, which is refused"},
		"file URL":                 {gitsource.Options{URL: "file:///srv/git/a.git"}, "is a path of this machine, which is refused"},
		"git protocol":             {gitsource.Options{URL: "git://example.com/a.git"}, "git is not spoken here"},
		"SSH without known hosts":  {gitsource.Options{URL: "git@example.com:a.git", Auth: gitsource.Auth{SSH: &gitsource.SSH{Key: fixed("x")}}}, "no host is trusted at first sight"},
		"SSH without a key":        {gitsource.Options{URL: "git@example.com:a.git", Auth: gitsource.Auth{SSH: &gitsource.SSH{KnownHosts: []byte("x")}}}, "needs an SSH key or the SSH agent"},
		"SSH with a token":         {gitsource.Options{URL: "git@example.com:a.git", Auth: gitsource.Auth{Bearer: fixed("x")}}, "needs auth with a key or an agent"},
		"HTTP with a key":          {gitsource.Options{URL: "https://example.com/a.git", Auth: key}, "auth is for SSH"},
		"two ways":                 {gitsource.Options{URL: "https://example.com/a.git", Auth: gitsource.Auth{Bearer: fixed("x"), App: fixed("x")}}, "has 2 ways to authenticate"},
		"wrong pattern":            {gitsource.Options{URL: "https://example.com/a.git", Include: []string{"a[.hcl"}}, "cannot be read"},
		"pattern from a root":      {gitsource.Options{URL: "https://example.com/a.git", Include: []string{"/a.hcl"}}, "never matches"},
		"wrong store":              {gitsource.Options{URL: "https://example.com/a.git", Store: gitsource.Store{Kind: "memory"}}, `neither "mirror" nor "shallow"`},
		"keys without a reader":    {gitsource.Options{URL: "https://example.com/a.git", Verify: gitsource.Verify{Mode: gitsource.VerifyHead}}, "no key is given"},
		"wrong mode":               {gitsource.Options{URL: "https://example.com/a.git", Verify: gitsource.Verify{Mode: "all"}}, `verify mode "all"`},
		"wrong key ring":           {gitsource.Options{URL: "https://example.com/a.git", Verify: gitsource.Verify{OpenPGPKeys: []byte("x")}}, "OpenPGP keys cannot be read"},
		"wrong CA":                 {gitsource.Options{URL: "https://example.com/a.git", CA: []byte("x")}, "no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.options.Store.Kind == "" {
				c.options.Store = gitsource.Store{Kind: gitsource.Shallow, Folder: t.TempDir()}
			}
			_, err := gitsource.Open(c.options)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}

func TestLocalPathsAreForTests(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		_, repo := server(t)
		repo.Commit("main", map[string]string{"a.hcl": "1"})
		for _, url := range []string{repo.Path, "file://" + repo.Path} {
			r := open(t, url, kind, func(o *gitsource.Options) { o.Local = gitsource.Tests })
			require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, r, main)))
		}
	})
}

func TestAddressesAreRedacted(t *testing.T) {
	for in, want := range map[string]string{
		"https://ada:s3cret@example.com/a.git?token=s3cret#s3cret": "https://example.com/a.git",
		"ssh://git@example.com:22/a.git":                           "ssh://example.com:22/a.git",
		"git@example.com:acme/a.git":                               "example.com:acme/a.git",
		"https://ada:s3cret@example.com:port/%zz":                  "https://example.com:port/%zz",
		"https://ada:s3@cret@example.com:port/a":                   "https://example.com:port/a",
		"/srv/git/a.git":                                           "/srv/git/a.git",
	} {
		require.Equal(t, want, gitsource.Redacted(in))
	}
}
