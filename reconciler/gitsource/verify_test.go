package gitsource

import (
	"testing"

	"github.com/hiddeco/sshsig"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

func TestWeakKindsOfSSHSignaturesAreNotTaken(t *testing.T) {
	for format, says := range map[string]string{"ssh-rsa": "RSA with SHA-1", "ssh-dss": "DSA", "rsa-sha2-512": "", "ssh-ed25519": ""} {
		reason := weak(&sshsig.Signature{Signature: &ssh.Signature{Format: format}})
		require.Equal(t, says == "", reason == "", format)
		require.Contains(t, reason, says)
	}
}
