package gitsource

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Options say how one repository is reached and what of it is read.
type Options struct {
	URL     string // https://, http://, ssh:// or user@host:path; without a password in it
	Auth    Auth
	Store   Store
	Include []string // doublestar patterns of watched paths; empty for all
	Exclude []string // patterns of paths that are not watched although included
	Limits  Limits
	Verify  Verify
	Hosts   *Hosts // shared between remotes; nil for no limit
	Local   Local
	CA      []byte // PEM of further certificate authorities for https
}

// Secret yields a secret when it is needed: a rotated one is taken at the next call.
type Secret func(ctx context.Context) (string, error)

// Auth is how a remote is told who asks. At most one way is given.
type Auth struct {
	// Basic is HTTP basic authentication. An access token of GitHub, GitLab or Gitea goes
	// here as the password, with any user: their Git doors take no bearer.
	Basic *Basic
	// Bearer is an Authorization: Bearer header.
	Bearer Secret
	// App yields a fresh installation token of a GitHub App.
	App Secret
	SSH *SSH
}

// Basic is a user with a password.
type Basic struct {
	User     string
	Password Secret
}

// SSH is how a server is reached over SSH.
type SSH struct {
	User       string // default: the URL's, else git
	Key        Secret // PEM of the private key; nil for none
	Passphrase Secret // of the key; nil for none
	Agent      Agent
	KnownHosts []byte // required: no host is trusted at first sight
}

// Agent says whether the SSH agent of the environment (SSH_AUTH_SOCK) is asked.
type Agent string

// With and without an agent.
const (
	NoAgent  Agent = ""
	UseAgent Agent = "agent"
)

// Store says where objects are kept.
type Store struct {
	Kind   StoreKind
	Folder string // below which mirrors and temporary stores are made; one remote's are told apart by its URL
}

// StoreKind is how commits are fetched.
type StoreKind string

// The kinds of stores.
const (
	Mirror  StoreKind = "mirror"  // a bare mirror that knows history and fetches only what is new
	Shallow StoreKind = "shallow" // one commit at depth 1 into an empty folder, removed afterwards
)

// Local says whether a path of this machine may be a remote.
type Local string

// Local remotes run the git command of this machine, so they are for tests only.
const (
	Production Local = ""
	Tests      Local = "tests"
)

// Limits bound what is taken from a remote. Zero means the default.
type Limits struct {
	FileBytes  int64 // of one watched file; default 1 MiB
	Files      int   // watched files; default 10,000
	TotalBytes int64 // of all watched files; default 64 MiB
	PackBytes  int64 // of one pack received; default 1 GiB
	Entries    int   // of trees looked at; default 1,000,000
	Abandoned  int   // calls that hang past their deadline before no new one begins; default 4
	Packs      int   // in a mirror before it is made anew; default 200
}

func (l Limits) orDefaults() Limits {
	return Limits{
		FileBytes: or(l.FileBytes, 1<<20), Files: or(l.Files, 10_000), TotalBytes: or(l.TotalBytes, 64<<20),
		PackBytes: or(l.PackBytes, 1<<30), Entries: or(l.Entries, 1_000_000), Abandoned: or(l.Abandoned, 4), Packs: or(l.Packs, 200),
	}
}

func or[T int | int64](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// Verify says what has to be signed, and by whom.
type Verify struct {
	Mode           VerifyMode
	OpenPGPKeys    []byte // armored key ring
	AllowedSigners []byte // SSH allowed signers
}

// VerifyMode is what must be signed.
type VerifyMode string

// What must be signed: nothing, the commit, the tag, or both.
const (
	VerifyNone VerifyMode = ""
	VerifyHead VerifyMode = "head"
	VerifyTag  VerifyMode = "tag"
	VerifyBoth VerifyMode = "tag_and_head"
)

// check reads the options. Its errors name the field and never a secret.
func (o Options) check() (*transport.Endpoint, error) {
	if o.URL == "" {
		return nil, errors.New("a repository needs a URL")
	}
	ep, err := transport.NewEndpoint(o.URL)
	if err != nil {
		return nil, fmt.Errorf("the URL of the repository cannot be read: %s", withoutURL(err))
	}
	if ep.Password != "" || ep.Protocol != "ssh" && ep.User != "" {
		return nil, fmt.Errorf("the URL %s has a user or password in it; give them as auth, from a file or the environment", Redacted(o.URL))
	}
	switch ep.Protocol {
	case "https", "http":
		if o.Auth.SSH != nil {
			return nil, fmt.Errorf("%s is reached over HTTP, but auth is for SSH", Redacted(o.URL))
		}
	case "ssh":
		if err := o.checkSSH(); err != nil {
			return nil, err
		}
	case "file":
		if o.Local != Tests {
			return nil, fmt.Errorf("%s is a path of this machine, which is refused; use https:// or ssh://", Redacted(o.URL))
		}
	default:
		return nil, fmt.Errorf("%s: %s is not spoken here; use https:// or ssh://", Redacted(o.URL), printable(ep.Protocol))
	}
	return ep, errors.Join(o.checkAuth(), o.checkRest())
}

func (o Options) checkSSH() error {
	if o.Auth.SSH == nil {
		return fmt.Errorf("%s is reached over SSH and needs auth with a key or an agent, and known_hosts", Redacted(o.URL))
	}
	if o.Auth.SSH.Key == nil && o.Auth.SSH.Agent != UseAgent {
		return fmt.Errorf("%s needs an SSH key or the SSH agent", Redacted(o.URL))
	}
	if len(o.Auth.SSH.KnownHosts) == 0 {
		return fmt.Errorf("%s needs known_hosts: no host is trusted at first sight", Redacted(o.URL))
	}
	return nil
}

func (o Options) checkAuth() error {
	ways := 0
	for _, given := range []bool{o.Auth.Basic != nil, o.Auth.Bearer != nil, o.Auth.App != nil, o.Auth.SSH != nil} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		return fmt.Errorf("%s has %d ways to authenticate; give one", Redacted(o.URL), ways)
	}
	return nil
}

func (o Options) checkRest() error {
	for _, p := range append(append([]string{}, o.Include...), o.Exclude...) {
		if !doublestar.ValidatePattern(p) {
			return fmt.Errorf("the pattern %q of watched paths cannot be read", p)
		}
		if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "./") {
			return fmt.Errorf("the pattern %q never matches: paths begin at the root of the repository, without / or ./", p)
		}
	}
	if o.Store.Kind != Mirror && o.Store.Kind != Shallow {
		return fmt.Errorf("the store %q is neither %q nor %q", o.Store.Kind, Mirror, Shallow)
	}
	if !filepath.IsAbs(o.Store.Folder) {
		return fmt.Errorf("the folder of the store must be absolute, not %q", o.Store.Folder)
	}
	return nil
}

// Redacted is a remote's address without user, password, query or fragment.
func Redacted(address string) string {
	if u, err := url.Parse(address); err == nil && u.Scheme != "" {
		u.User, u.RawQuery, u.Fragment, u.ForceQuery = nil, "", "", false
		return printable(u.String())
	}
	if scheme, rest, ok := strings.Cut(address, "://"); ok { // it does not parse, so be coarse
		authority, path, _ := strings.Cut(rest, "/")
		return printable(scheme + "://" + authority[strings.LastIndex(authority, "@")+1:] + "/" + path)
	}
	authority, path, ok := strings.Cut(address, ":")
	if !ok {
		return printable(address)
	}
	return printable(authority[strings.LastIndex(authority, "@")+1:] + ":" + path)
}

// withoutURL is the cause of an error about an address, without the address.
func withoutURL(err error) string {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return "it is no address that Git knows"
	}
	return printable(err.Error())
}
