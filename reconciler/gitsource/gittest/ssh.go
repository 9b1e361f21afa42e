package gittest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHOptions say which keys a server over SSH has and whom it lets in.
type SSHOptions struct {
	HostKeys   []ssh.Signer
	Authorized []ssh.PublicKey
	Fault      SSHFault
}

// SSHFault is what goes wrong over SSH.
type SSHFault string

// The faults over SSH: the server says nothing at all, it says nothing after the list
// of refs, or it ends in the middle of the list.
const (
	NoFault     SSHFault = ""
	Silent      SSHFault = "silent"
	SilentPack  SSHFault = "silent pack"
	CutInRefs   SSHFault = "cut in refs"
	ForbidsRepo SSHFault = "forbids"
)

// SSHServer serves the repositories of a Server over SSH.
type SSHServer struct {
	Address string // host:port

	t       testing.TB
	server  *Server
	options SSHOptions
	config  *ssh.ServerConfig
	listen  net.Listener
	running sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// SSH starts a server over SSH until the test ends.
func (s *Server) SSH(t testing.TB, o SSHOptions) *SSHServer {
	t.Helper()
	listen, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := &SSHServer{Address: listen.Addr().String(), t: t, server: s, options: o, listen: listen, conns: map[net.Conn]bool{}}
	h.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		for _, k := range o.Authorized {
			if bytes.Equal(k.Marshal(), key.Marshal()) {
				return &ssh.Permissions{}, nil
			}
		}
		return nil, errors.New("not authorized")
	}}
	for _, k := range o.HostKeys {
		h.config.AddHostKey(k)
	}
	h.running.Add(1)
	go h.accept()
	t.Cleanup(h.close)
	return h
}

// URL is a repository's address over SSH.
func (h *SSHServer) URL(r *Repository) string {
	return "ssh://git@" + h.Address + "/" + r.Name + ".git"
}

// KnownHosts pins keys for this server.
func (h *SSHServer) KnownHosts(keys ...ssh.PublicKey) []byte {
	var all bytes.Buffer
	for _, k := range keys {
		all.WriteString(knownhosts.Line([]string{h.Address}, k) + "\n")
	}
	return all.Bytes()
}

func (h *SSHServer) close() {
	_ = h.listen.Close()
	h.mu.Lock()
	for c := range h.conns {
		_ = c.Close()
	}
	h.mu.Unlock()
	h.running.Wait()
}

func (h *SSHServer) accept() {
	defer h.running.Done()
	for {
		conn, err := h.listen.Accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		h.conns[conn] = true
		h.mu.Unlock()
		h.running.Add(1)
		go func() {
			defer h.running.Done()
			defer func() { _ = conn.Close() }()
			h.talk(conn)
		}()
	}
}

func (h *SSHServer) talk(conn net.Conn) {
	if h.options.Fault == Silent {
		_, _ = io.Copy(io.Discard, conn) // until the client leaves
		return
	}
	through, channels, requests, err := ssh.NewServerConn(conn, h.config)
	if err != nil {
		return
	}
	defer func() { _ = through.Close() }()
	gone := make(chan struct{})
	h.running.Add(1)
	go func() {
		defer h.running.Done()
		ssh.DiscardRequests(requests) // until the connection ends
		close(gone)
	}()
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		h.session(channel, asked, gone)
	}
}

// session runs git-upload-pack of one repository, and nothing else.
func (h *SSHServer) session(channel ssh.Channel, asked <-chan *ssh.Request, gone <-chan struct{}) {
	defer func() { _ = channel.Close() }()
	for req := range asked {
		var exec struct{ Command string }
		if req.Type != "exec" || ssh.Unmarshal(req.Payload, &exec) != nil {
			_ = req.Reply(false, nil)
			continue
		}
		_ = req.Reply(true, nil)
		name, ok := strings.CutPrefix(exec.Command, "git-upload-pack ")
		path := filepath.Join(h.server.root, filepath.Clean("/"+strings.Trim(name, "'")))
		h.server.count(Refs)
		code := uint32(0)
		if !ok || h.options.Fault == ForbidsRepo {
			_, _ = io.WriteString(channel.Stderr(), "ERROR: Repository not found.\n")
			code = 128
		} else if err := h.run(channel, path, gone); err != nil {
			code = 1
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
		return
	}
}

func (h *SSHServer) run(channel ssh.Channel, path string, gone <-chan struct{}) error {
	cmd := exec.CommandContext(h.t.Context(), h.server.git, "upload-pack", path)
	cmd.Env = environment()
	cmd.Stderr = channel.Stderr()
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	var out io.Writer = channel
	if h.options.Fault == CutInRefs {
		out = &cut{Channel: channel, left: 100}
	}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		return err
	}
	asked := &first{Reader: channel, seen: func() { h.server.count(Pack) }}
	if h.options.Fault == SilentPack {
		_, _ = io.Copy(io.Discard, asked)
		<-gone
		_ = in.Close()
	} else {
		h.running.Add(1)
		go func() {
			defer h.running.Done()
			_, _ = io.Copy(in, asked)
			_ = in.Close()
		}()
	}
	return cmd.Wait()
}

// first tells when something other than the end of a talk (a flush) was read.
type first struct {
	io.Reader
	seen func()
	told bool
}

func (f *first) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if !f.told && n > 4 {
		f.told = true
		f.seen()
	}
	return n, err
}

// cut closes a channel after so many bytes.
type cut struct {
	ssh.Channel
	left int
}

func (c *cut) Write(p []byte) (int, error) {
	n, _ := c.Channel.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left <= 0 {
		_ = c.Close()
	}
	return len(p), nil
}
