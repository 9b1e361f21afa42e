package gittest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/hiddeco/sshsig"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// Signer makes an armored signature over the bytes of a commit or tag.
type Signer func(payload []byte) string

// KeyKind is a kind of SSH key.
type KeyKind string

// The kinds that hosts and people have.
const (
	Ed25519 KeyKind = "ed25519"
	ECDSA   KeyKind = "ecdsa"
	RSA     KeyKind = "rsa"
)

// SSHKey makes a key: to sign with, to serve with, and its PEM.
func SSHKey(t testing.TB, kind KeyKind) (ssh.Signer, []byte) {
	t.Helper()
	var private any
	var err error
	switch kind {
	case RSA:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	case ECDSA:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	}
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "test")
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return signer, pem.EncodeToMemory(block)
}

// SSHSigner signs as git does with gpg.format=ssh, for which the namespace is "git".
func SSHSigner(t testing.TB, key ssh.Signer, namespace string) Signer {
	return func(payload []byte) string {
		sig, err := sshsig.Sign(bytes.NewReader(payload), key, sshsig.HashSHA512, namespace)
		require.NoError(t, err)
		return string(sshsig.Armor(sig))
	}
}

// OpenPGPKey makes a key and its armored public part. lifetime 0 is for ever; the key
// was made at an instant.
func OpenPGPKey(t testing.TB, name string, made time.Time, lifetime time.Duration) (*openpgp.Entity, []byte) {
	t.Helper()
	e, err := openpgp.NewEntity(name, "", name+"@example.com", &packet.Config{
		Algorithm: packet.PubKeyAlgoEdDSA, KeyLifetimeSecs: uint32(lifetime.Seconds()), Time: func() time.Time { return made },
	})
	require.NoError(t, err)
	var public bytes.Buffer
	w, err := armor.Encode(&public, openpgp.PublicKeyType, nil)
	require.NoError(t, err)
	require.NoError(t, e.Serialize(w))
	require.NoError(t, w.Close())
	return e, public.Bytes()
}

// OpenPGPSigner signs at an instant; the zero one is now.
func OpenPGPSigner(t testing.TB, e *openpgp.Entity, at time.Time) Signer {
	return func(payload []byte) string {
		var config *packet.Config
		if !at.IsZero() {
			config = &packet.Config{Time: func() time.Time { return at }}
		}
		var out bytes.Buffer
		require.NoError(t, openpgp.ArmoredDetachSign(&out, e, bytes.NewReader(payload), config))
		return out.String() + "\n"
	}
}
