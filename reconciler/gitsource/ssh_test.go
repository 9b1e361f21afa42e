package gitsource_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource/gittest"
)

// overSSH are options for a server over SSH.
func overSSH(pem []byte, knownHosts []byte) func(*gitsource.Options) {
	return func(o *gitsource.Options) {
		o.Auth.SSH = &gitsource.SSH{Key: fixed(string(pem)), KnownHosts: knownHosts}
	}
}

func fixed(secret string) gitsource.Secret {
	return func(context.Context) (string, error) { return secret, nil }
}

// F11: a host with three keys, known_hosts with each single one, with a wrong one, with
// one of a kind that the host lacks, and with none.
func TestHostKeysArePinned(t *testing.T) {
	s, repo := server(t)
	repo.Commit("main", map[string]string{"a.hcl": "1"})
	user, pem := gittest.SSHKey(t, gittest.Ed25519)
	kinds := []gittest.KeyKind{gittest.Ed25519, gittest.ECDSA, gittest.RSA}
	keys := map[gittest.KeyKind]ssh.Signer{}
	var hostKeys []ssh.Signer
	for _, kind := range kinds {
		keys[kind], _ = gittest.SSHKey(t, kind)
		hostKeys = append(hostKeys, keys[kind])
	}
	h := s.SSH(t, gittest.SSHOptions{HostKeys: hostKeys, Authorized: []ssh.PublicKey{user.PublicKey()}})
	for _, kind := range kinds {
		t.Run("pinned "+string(kind), func(t *testing.T) {
			bothStores(t, func(t *testing.T, store gitsource.StoreKind) {
				r := open(t, h.URL(repo), store, overSSH(pem, h.KnownHosts(keys[kind].PublicKey())))
				require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, r, main)))
			})
		})
	}
	refused := func(t *testing.T, h *gittest.SSHServer, knownHosts []byte) *gitsource.HostKey {
		_, err := open(t, h.URL(repo), gitsource.Shallow, overSSH(pem, knownHosts)).Refs(bounded(t))
		wrong := &gitsource.HostKey{}
		require.ErrorAs(t, err, &wrong)
		return wrong
	}
	t.Run("another host is pinned", func(t *testing.T) {
		other, _ := gittest.SSHKey(t, gittest.Ed25519)
		elsewhere := s.SSH(t, gittest.SSHOptions{})
		wrong := refused(t, h, elsewhere.KnownHosts(other.PublicKey()))
		require.Empty(t, wrong.Pinned)
		require.Contains(t, wrong.Error(), "host key not pinned: known_hosts has no key for "+h.Address)
		require.Contains(t, wrong.Error(), wrong.Offered)
		require.Contains(t, wrong.Error(), "add this line to known_hosts: "+wrong.KnownHosts)
		r := open(t, h.URL(repo), gitsource.Shallow, overSSH(pem, []byte(wrong.KnownHosts)))
		require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, r, main)), "the line that the error names pins the key")
	})
	t.Run("another key is pinned", func(t *testing.T) {
		other, _ := gittest.SSHKey(t, gittest.Ed25519)
		wrong := refused(t, h, h.KnownHosts(other.PublicKey()))
		require.Equal(t, ssh.FingerprintSHA256(keys[gittest.Ed25519].PublicKey()), wrong.Offered)
		require.Contains(t, wrong.Error(), "is another one than pinned")
		require.Contains(t, wrong.Error(), ssh.FingerprintSHA256(other.PublicKey()))
	})
	t.Run("a key of a kind that the host lacks is pinned", func(t *testing.T) {
		one := s.SSH(t, gittest.SSHOptions{HostKeys: hostKeys[:1], Authorized: []ssh.PublicKey{user.PublicKey()}})
		wrong := refused(t, one, one.KnownHosts(keys[gittest.RSA].PublicKey()))
		require.Contains(t, wrong.Error(), "no key of the kind that is pinned (ssh-rsa SHA256:")
	})
	t.Run("the key is revoked", func(t *testing.T) {
		line := "@revoked " + string(h.KnownHosts(keys[gittest.Ed25519].PublicKey()))
		wrong := refused(t, h, append([]byte(line), h.KnownHosts(keys[gittest.Ed25519].PublicKey())...))
		require.Contains(t, wrong.Error(), "is revoked by known_hosts: ssh-ed25519 SHA256:")
	})
}

func TestSSHKeysAndAgents(t *testing.T) {
	s, repo := server(t)
	repo.Commit("main", map[string]string{"a.hcl": "1"})
	host, _ := gittest.SSHKey(t, gittest.Ed25519)
	user, pem := gittest.SSHKey(t, gittest.RSA)
	_, stranger := gittest.SSHKey(t, gittest.Ed25519)
	h := s.SSH(t, gittest.SSHOptions{HostKeys: []ssh.Signer{host}, Authorized: []ssh.PublicKey{user.PublicKey()}})
	pinned := h.KnownHosts(host.PublicKey())

	_, err := open(t, h.URL(repo), gitsource.Shallow, overSSH(stranger, pinned)).Refs(bounded(t))
	require.ErrorContains(t, err, "the server does not take this key; add its public key to the repository as a deploy key")
	_, err = open(t, h.URL(repo), gitsource.Shallow, overSSH([]byte("no key"), pinned)).Refs(bounded(t))
	require.ErrorContains(t, err, "it is no private key")
	require.NotContains(t, err.Error(), "no key", "nothing of a secret is in an error")

	serveAgent(t, pem)
	r := open(t, h.URL(repo), gitsource.Shallow, func(o *gitsource.Options) {
		o.Auth.SSH = &gitsource.SSH{Agent: gitsource.UseAgent, KnownHosts: pinned}
	})
	require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, r, main)))
}

// serveAgent is an SSH agent with one key until the test ends.
func serveAgent(t *testing.T, pem []byte) {
	key, err := ssh.ParseRawPrivateKey(pem)
	require.NoError(t, err)
	ring := agent.NewKeyring()
	require.NoError(t, ring.Add(agent.AddedKey{PrivateKey: key}))
	socket := t.TempDir() + "/agent"
	listen, err := net.Listen("unix", socket)
	require.NoError(t, err)
	t.Setenv("SSH_AUTH_SOCK", socket)
	done := make(chan struct{})
	t.Cleanup(func() { _ = listen.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := listen.Accept()
			if err != nil {
				return
			}
			_ = agent.ServeAgent(ring, conn)
			_ = conn.Close()
		}
	}()
}

func TestRepositoryThatSSHDoesNotShow(t *testing.T) {
	s, repo := server(t)
	host, _ := gittest.SSHKey(t, gittest.Ed25519)
	user, pem := gittest.SSHKey(t, gittest.Ed25519)
	h := s.SSH(t, gittest.SSHOptions{HostKeys: []ssh.Signer{host}, Authorized: []ssh.PublicKey{user.PublicKey()}, Fault: gittest.ForbidsRepo})
	_, err := open(t, h.URL(repo), gitsource.Shallow, overSSH(pem, h.KnownHosts(host.PublicKey()))).Refs(bounded(t))
	refused := &gitsource.Refused{}
	require.ErrorAs(t, err, &refused)
	require.Contains(t, err.Error(), "Repository not found.")
}

func TestEmptyRepositoryOverSSH(t *testing.T) {
	s, repo := server(t)
	host, _ := gittest.SSHKey(t, gittest.Ed25519)
	user, pem := gittest.SSHKey(t, gittest.Ed25519)
	h := s.SSH(t, gittest.SSHOptions{HostKeys: []ssh.Signer{host}, Authorized: []ssh.PublicKey{user.PublicKey()}})
	r := open(t, h.URL(repo), gitsource.Mirror, overSSH(pem, h.KnownHosts(host.PublicKey())))
	require.Equal(t, gitsource.Empty, resolve(t, r, main).State)
	for _, text := range []string{"1", "2", "3"} {
		repo.Commit("main", map[string]string{"a.hcl": text})
		require.Equal(t, map[string]string{"a.hcl": text}, texts(read(t, r, main)), "a fetch into a mirror that has something")
	}
}

// F9: a server that goes silent at any point of the talk over SSH ends at the deadline.
func TestSilentSSHServerEndsAtTheDeadline(t *testing.T) {
	host, _ := gittest.SSHKey(t, gittest.Ed25519)
	user, pem := gittest.SSHKey(t, gittest.Ed25519)
	for _, fault := range []gittest.SSHFault{gittest.Silent, gittest.SilentPack} {
		t.Run(string(fault), func(t *testing.T) {
			bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
				s, repo := server(t)
				c := repo.Commit("main", map[string]string{"a.hcl": "1"})
				h := s.SSH(t, gittest.SSHOptions{HostKeys: []ssh.Signer{host}, Authorized: []ssh.PublicKey{user.PublicKey()}, Fault: fault})
				ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
				defer cancel()
				r := open(t, h.URL(repo), kind, overSSH(pem, h.KnownHosts(host.PublicKey())))
				_, err := r.Read(ctx, gitsource.Resolved{Commit: c, State: gitsource.Found})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				noneHang(t)
			})
		})
	}
}

func TestListOfRefsCutOverSSH(t *testing.T) {
	s, repo := server(t)
	repo.Commit("main", map[string]string{"a.hcl": "1"})
	host, _ := gittest.SSHKey(t, gittest.Ed25519)
	user, pem := gittest.SSHKey(t, gittest.Ed25519)
	h := s.SSH(t, gittest.SSHOptions{HostKeys: []ssh.Signer{host}, Authorized: []ssh.PublicKey{user.PublicKey()}, Fault: gittest.CutInRefs})
	refs, err := open(t, h.URL(repo), gitsource.Shallow, overSSH(pem, h.KnownHosts(host.PublicKey()))).Refs(bounded(t))
	require.Error(t, err)
	require.Empty(t, refs.Commits, "half a list is no list")
}
