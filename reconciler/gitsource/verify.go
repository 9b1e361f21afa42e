package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// verifier checks signatures against the keys of a configuration.
type verifier struct {
	mode    VerifyMode
	ring    openpgp.EntityList
	signers []allowedSigner
}

func newVerifier(v Verify) (*verifier, error) {
	out := &verifier{mode: v.Mode}
	switch v.Mode {
	case VerifyNone, VerifyHead, VerifyTag, VerifyBoth:
	default:
		return nil, fmt.Errorf("verify mode %q is none of %q, %q and %q", v.Mode, VerifyHead, VerifyTag, VerifyBoth)
	}
	var err error
	if len(v.OpenPGPKeys) > 0 {
		if out.ring, err = openpgp.ReadArmoredKeyRing(bytes.NewReader(v.OpenPGPKeys)); err != nil {
			return nil, fmt.Errorf("the OpenPGP keys cannot be read: %w", err)
		}
	}
	if out.signers, err = parseAllowedSigners(v.AllowedSigners); err != nil {
		return nil, err
	}
	if v.Mode != VerifyNone && len(out.ring) == 0 && len(out.signers) == 0 {
		return nil, errors.New("signatures are asked for and no key is given: name OpenPGP keys or allowed signers")
	}
	return out, nil
}

// check verifies what the mode asks for and returns whose signature it is.
func (v *verifier) check(store storer.EncodedObjectStorer, c rawCommit, at Resolved) (signer string, err error) {
	if v.mode == VerifyTag || v.mode == VerifyBoth {
		if signer, err = v.tag(store, c, at); err != nil {
			return "", err
		}
	}
	if v.mode == VerifyHead || v.mode == VerifyBoth {
		who, reason := v.signed(c.payload, c.signature, c.at)
		if reason != "" {
			return "", &Unverified{"commit " + short(c.id.String()), reason}
		}
		signer = who
	}
	return signer, nil
}

// tag verifies the annotated tag that a ref is. The tag has its name inside: an old
// signed tag that is pushed again under a newer name does not pass.
func (v *verifier) tag(store storer.EncodedObjectStorer, c rawCommit, at Resolved) (string, error) {
	what := "commit " + short(c.id.String())
	ref, ok := strings.CutPrefix(at.Ref, tags)
	if !ok {
		return "", &Unverified{what, "a signed tag is asked for, and what is followed is no tag"}
	}
	what = "tag " + printable(ref)
	if at.Tag == "" {
		return "", &Unverified{what, "it is a lightweight tag, which has no signature"}
	}
	raw, err := readObject(store, plumbing.NewHash(at.Tag), plumbing.TagObject)
	if err != nil {
		return "", err
	}
	t, err := parseTag(raw)
	switch {
	case err != nil:
		return "", &Unverified{what, "it cannot be read: " + err.Error()}
	case t.name != ref:
		return "", &Unverified{what, fmt.Sprintf("the tag object says that its name is %q", printable(t.name))}
	case t.kind != "commit" || t.object != c.id:
		return "", &Unverified{what, "it is not a tag of this commit"}
	}
	who, reason := v.signed(t.payload, t.signature, t.at)
	if reason != "" {
		return "", &Unverified{what, reason}
	}
	return who, nil
}

// signed checks one signature over a payload; reason is empty when it is good.
func (v *verifier) signed(payload, signature []byte, at time.Time) (signer, reason string) {
	switch text := string(signature); {
	case len(signature) == 0:
		return "", "it is not signed"
	case strings.HasPrefix(text, "-----BEGIN SSH SIGNATURE-----"):
		return v.ssh(payload, signature, at)
	case strings.HasPrefix(text, "-----BEGIN PGP"):
		return v.openPGP(payload, signature)
	}
	return "", "its signature is of a kind that is not read here; OpenPGP and SSH are"
}

func (v *verifier) openPGP(payload, signature []byte) (signer, reason string) {
	if len(v.ring) == 0 {
		return "", "it has an OpenPGP signature, and no OpenPGP keys are given"
	}
	who, err := openpgp.CheckArmoredDetachedSignature(v.ring, bytes.NewReader(payload), bytes.NewReader(signature), nil)
	switch {
	case err == nil && who.PrimaryIdentity() != nil:
		return who.PrimaryIdentity().Name, ""
	case err == nil:
		return fmt.Sprintf("OpenPGP key %X", who.PrimaryKey.Fingerprint), ""
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return "", "its OpenPGP signature is by a key that is not among the given ones"
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return "", "the OpenPGP key of its signature has expired"
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return "", "its OpenPGP signature has expired"
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return "", "the OpenPGP key of its signature is revoked"
	}
	return "", "its OpenPGP signature is not good: " + printable(err.Error())
}

// ssh checks a signature as ssh-keygen does for git: of the namespace git, by a key
// that an allowed signer had at the time that the commit or tag names.
func (v *verifier) ssh(payload, signature []byte, at time.Time) (signer, reason string) {
	if len(v.signers) == 0 {
		return "", "it has an SSH signature, and no allowed signers are given"
	}
	sig, err := sshsig.Unarmor(signature)
	if err != nil {
		return "", "its SSH signature cannot be read"
	}
	if sig.Namespace != sshNamespace {
		return "", fmt.Sprintf("its SSH signature is for %q and not for %q", printable(sig.Namespace), sshNamespace)
	}
	if reason := weak(sig); reason != "" {
		return "", reason
	}
	signer, reason = find(v.signers, sig.PublicKey, at)
	if reason != "" {
		return "", reason
	}
	if err := sshsig.Verify(bytes.NewReader(payload), sig, sig.PublicKey, sig.HashAlgorithm, sshNamespace); err != nil {
		return "", "its SSH signature does not fit its content"
	}
	return signer, ""
}

// weak says why a signature is not taken although it may be good: ssh-keygen takes
// neither DSA nor RSA with SHA-1.
func weak(sig *sshsig.Signature) string {
	switch sig.Signature.Format {
	case "ssh-dss":
		return "its SSH signature is by a DSA key, which is too weak"
	case ssh.KeyAlgoRSA:
		return "its SSH signature is RSA with SHA-1, which is too weak; sign with rsa-sha2-512"
	}
	return ""
}
