package reconciler

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"
)

// transport is how a repository is reached.
type transport string

const (
	overHTTP transport = "http"
	overSSH  transport = "ssh"
	local    transport = "local"
)

// address is a repository's URL, taken apart.
type address struct {
	Transport transport
	Scheme    string
	Host      string // lower case, with its port
	Path      string // without the .git at its end
	User      string
}

// parseAddress reads https://host/path, ssh://user@host/path and user@host:path.
func parseAddress(text string) (address, error) {
	if text == "" {
		return address{}, errors.New("it is empty")
	}
	if i := strings.Index(text, "://"); i >= 0 {
		return parseURL(text)
	}
	host, rest, ok := strings.Cut(text, ":")
	if !ok || strings.Contains(host, "/") || rest == "" || len(host) == 1 { // C:\ is a path too
		return address{Transport: local, Path: text}, nil
	}
	user, host, ok := strings.Cut(host, "@")
	if !ok {
		user, host = "", user
	}
	return address{Transport: overSSH, Scheme: "ssh", Host: strings.ToLower(host), Path: cleanPath(rest), User: user}, nil
}

func parseURL(text string) (address, error) {
	u, err := url.Parse(text)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) { // without the text, which may hold a password
			err = e.Err
		}
		return address{}, err
	}
	out := address{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: cleanPath(u.Path), User: u.User.Username()}
	switch u.Scheme {
	case "https", "http":
		out.Transport = overHTTP
	case "ssh", "git+ssh":
		out.Transport = overSSH
	case "file":
		out.Transport = local
		return out, nil
	default:
		return address{}, fmt.Errorf("the scheme %s is not spoken", u.Scheme)
	}
	if _, password := u.User.Password(); password || out.Transport == overHTTP && out.User != "" {
		return address{}, errSecretInURL
	}
	if out.Host == "" || out.Path == "" {
		return address{}, errors.New("it names no host and path")
	}
	return out, nil
}

var errSecretInURL = errors.New("it holds a user or a password")

func cleanPath(p string) string {
	return strings.TrimSuffix(strings.Trim(path.Clean("/"+p), "/"), ".git")
}

// loopback reports whether a host is this machine.
func (a address) loopback() bool {
	host := a.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
