package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/net/proxy"
)

// sshSession is git-upload-pack over SSH. go-git has one too, which neither ends its
// handshake at a deadline nor asks for the host keys that are pinned.
type sshSession struct {
	client *ssh.Client
	ssh    *ssh.Session
	in     io.WriteCloser
	out    io.Reader
	said   *head
	stop   func() bool
	refs   *packp.AdvRefs
}

// dialSSH connects, and closes the connection when the context ends.
func (r *remote) dialSSH(ctx context.Context, c *call) (transport.UploadPackSession, error) {
	port := r.endpoint.Port
	if port == 0 {
		port = 22
	}
	address := net.JoinHostPort(r.endpoint.Host, strconv.Itoa(port))
	if err := r.options.Hosts.wait(ctx, r.endpoint.Host); err != nil {
		return nil, err
	}
	config, release, err := r.configSSH(ctx, address, c)
	if err != nil {
		return nil, err
	}
	defer release()
	conn, err := proxy.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := &sshSession{said: &head{}, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
	through, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		s.stop()
		_ = conn.Close()
		return nil, r.handshake(address, c, err)
	}
	s.client = ssh.NewClient(through, channels, requests)
	if err := s.start("git-upload-pack "+quoted(r.endpoint.Path), r.limits.PackBytes, c); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *sshSession) start(command string, most int64, c *call) error {
	var err error
	if s.ssh, err = s.client.NewSession(); err != nil {
		return err
	}
	if s.in, err = s.ssh.StdinPipe(); err != nil {
		return err
	}
	out, err := s.ssh.StdoutPipe()
	if err != nil {
		return err
	}
	s.ssh.Stderr = s.said
	s.out = &bounded{ReadCloser: io.NopCloser(out), left: most, over: func() error { return c.met(tooManyBytes("the pack", most)) }}
	return s.ssh.Start(command)
}

// configSSH says who asks and which host keys are taken. release ends the talk with
// an agent.
func (r *remote) configSSH(ctx context.Context, address string, c *call) (*ssh.ClientConfig, func(), error) {
	a := r.options.Auth.SSH
	user := a.User
	if user == "" {
		user = r.endpoint.User
	}
	if user == "" {
		user = "git"
	}
	config := &ssh.ClientConfig{User: user, HostKeyAlgorithms: r.pins.algorithms(address), HostKeyCallback: r.pins.callback(c)}
	release := func() {}
	if a.Key != nil {
		signer, err := r.key(ctx)
		if err != nil {
			return nil, nil, err
		}
		config.Auth = append(config.Auth, ssh.PublicKeys(signer))
	}
	if a.Agent == UseAgent {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", os.Getenv("SSH_AUTH_SOCK"))
		if err != nil {
			return nil, nil, &Refused{What: "the SSH agent for " + r.name, Why: "it cannot be reached", Hint: "start one and let SSH_AUTH_SOCK name its socket"}
		}
		release = func() { _ = conn.Close() }
		config.Auth = append(config.Auth, ssh.PublicKeysCallback(agent.NewClient(conn).Signers))
	}
	return config, release, nil
}

// key reads the private key. Its errors say what is wrong and nothing of the key.
func (r *remote) key(ctx context.Context) (ssh.Signer, error) {
	pem, err := r.secret(ctx, "SSH key", r.options.Auth.SSH.Key)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey([]byte(pem))
	if missing := (*ssh.PassphraseMissingError)(nil); errors.As(err, &missing) {
		if r.options.Auth.SSH.Passphrase == nil {
			return nil, &Refused{What: "the SSH key for " + r.name, Why: "it has a passphrase and none is given"}
		}
		passphrase, err := r.secret(ctx, "passphrase", r.options.Auth.SSH.Passphrase)
		if err != nil {
			return nil, err
		}
		if signer, err = ssh.ParsePrivateKeyWithPassphrase([]byte(pem), []byte(passphrase)); err != nil {
			return nil, &Refused{What: "the SSH key for " + r.name, Why: "its passphrase does not open it"}
		}
		return signer, nil
	}
	if err != nil {
		return nil, &Refused{What: "the SSH key for " + r.name, Why: "it is no private key in PEM or OpenSSH form"}
	}
	return signer, nil
}

// handshake says what a failed handshake means.
func (r *remote) handshake(address string, c *call, err error) error {
	if known := c.cause(err); known != err { //nolint:errorlint // the very same error
		return known
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "no common algorithm for host key"):
		return &HostKey{Address: address, Pinned: r.pins.pinned(address)}
	case strings.Contains(text, "unable to authenticate"):
		return &Refused{What: "SSH to " + address, Why: "the server does not take this key", Hint: "add its public key to the repository as a deploy key, or check the user"}
	}
	return fmt.Errorf("SSH to %s: %w", address, err)
}

// AdvertisedReferences reads what the server offers first.
func (s *sshSession) AdvertisedReferences() (*packp.AdvRefs, error) {
	return s.AdvertisedReferencesContext(context.Background())
}

// AdvertisedReferencesContext ends with the context that the session was made with.
func (s *sshSession) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	if s.refs != nil {
		return s.refs, nil
	}
	refs := packp.NewAdvRefs()
	err := refs.Decode(s.out)
	switch {
	case errors.Is(err, packp.ErrEmptyAdvRefs), err == nil && refs.IsEmpty():
		return nil, transport.ErrEmptyRemoteRepository
	case err != nil:
		_ = s.ssh.Wait() // what the server said is complete then
		if said := s.said.String(); said != "" {
			return nil, &Refused{What: "git-upload-pack over SSH", Why: "the server says " + strconv.Quote(said), Hint: "check the path of the URL and what the key may read"}
		}
		return nil, err
	}
	transport.FilterUnsupportedCapabilities(refs.Capabilities)
	s.refs = refs
	return refs, nil
}

// UploadPack asks for objects and returns the answer, whose pack is read from it.
func (s *sshSession) UploadPack(_ context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if err := req.UploadRequest.Encode(s.in); err != nil {
		return nil, err
	}
	if err := req.UploadHaves.Encode(s.in, true); err != nil {
		return nil, err
	}
	if err := pktline.NewEncoder(s.in).Encodef("done\n"); err != nil {
		return nil, err
	}
	if err := s.in.Close(); err != nil {
		return nil, err
	}
	res := packp.NewUploadPackResponse(req)
	if err := res.Decode(io.NopCloser(s.out)); err != nil {
		return nil, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	return res, nil
}

// Close ends the connection.
func (s *sshSession) Close() error {
	s.stop()
	if s.client == nil {
		return nil
	}
	_ = s.client.Close() // a server may have closed first
	_ = s.client.Wait()
	return nil
}

// head keeps the first bytes that were written to it.
type head struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if room := 500 - h.text.Len(); room > 0 {
		h.text.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return printable(strings.TrimSpace(h.text.String()))
}

// quoted makes one word of a path for the shell at the other end, in the form that
// git-shell takes.
func quoted(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}
