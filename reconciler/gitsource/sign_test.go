package gitsource_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource/gittest"
)

// root0 is about when the commits of these tests are made.
var root0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func verify(mode gitsource.VerifyMode, keys []byte, signers string) func(*gitsource.Options) {
	return func(o *gitsource.Options) {
		o.Verify = gitsource.Verify{Mode: mode, OpenPGPKeys: keys, AllowedSigners: []byte(signers)}
	}
}

// line is a line of allowed signers.
func line(principal, options string, key ssh.Signer) string {
	return strings.TrimSpace(principal+" "+options) + " " + string(ssh.MarshalAuthorizedKey(key.PublicKey()))
}

func TestSignedCommits(t *testing.T) {
	good, _ := gittest.SSHKey(t, gittest.Ed25519)
	rsa, _ := gittest.SSHKey(t, gittest.RSA)
	other, _ := gittest.SSHKey(t, gittest.Ed25519)
	pgp, ring := gittest.OpenPGPKey(t, "ada", root0, 0)
	stranger, _ := gittest.OpenPGPKey(t, "eve", root0, 0)
	short, shortRing := gittest.OpenPGPKey(t, "old", root0.AddDate(-2, 0, 0), 24*time.Hour)
	byGood := gittest.SSHSigner(t, good, "git")
	for name, c := range map[string]struct {
		sign   gittest.Signer
		keys   []byte
		allow  string
		signer string
		reason string
	}{
		"SSH":                       {byGood, nil, line("ada@example.com", "", good), "ada@example.com", ""},
		"SSH with RSA":              {gittest.SSHSigner(t, rsa, "git"), nil, line("ada@example.com", "", rsa), "ada@example.com", ""},
		"SSH for git":               {byGood, nil, line(`"ada@example.com,eve@example.com"`, `namespaces="file,git"`, good), "ada@example.com,eve@example.com", ""},
		"SSH in its time":           {byGood, nil, line("ada@example.com", `valid-after="20251231Z",valid-before="20270101Z"`, good), "ada@example.com", ""},
		"SSH after a dead line":     {byGood, nil, line("old@example.com", `valid-before="20200101Z"`, good) + line("ada@example.com", "", good), "ada@example.com", ""},
		"SSH of a stranger":         {gittest.SSHSigner(t, other, "git"), nil, line("ada@example.com", "", good), "", "is not among the allowed signers"},
		"SSH for something else":    {gittest.SSHSigner(t, good, "file"), nil, line("ada@example.com", "", good), "", `is for "file" and not for "git"`},
		"SSH not allowed for git":   {byGood, nil, line("ada@example.com", `namespaces="file"`, good), "", "is not allowed for git"},
		"SSH before its time":       {byGood, nil, line("ada@example.com", `valid-after="20260102Z"`, good), "", "was not valid yet on 2026-01-01"},
		"SSH after its time":        {byGood, nil, line("ada@example.com", `valid-before="20251231Z"`, good), "", "was no longer valid on 2026-01-01"},
		"SSH with OpenPGP keys":     {byGood, ring, "", "", "no allowed signers are given"},
		"OpenPGP":                   {gittest.OpenPGPSigner(t, pgp, root0.Add(time.Hour)), ring, "", "ada <ada@example.com>", ""},
		"OpenPGP of a stranger":     {gittest.OpenPGPSigner(t, stranger, root0.Add(time.Hour)), ring, "", "", "is by a key that is not among the given ones"},
		"OpenPGP of an expired key": {gittest.OpenPGPSigner(t, short, root0.AddDate(-2, 0, 0).Add(time.Hour)), shortRing, "", "", "has expired"},
		"OpenPGP with SSH signers":  {gittest.OpenPGPSigner(t, pgp, root0.Add(time.Hour)), nil, line("ada@example.com", "", good), "", "no OpenPGP keys are given"},
		"unsigned":                  {nil, nil, line("ada@example.com", "", good), "", "it is not signed"},
		"rubbish":                   {func([]byte) string { return "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n" }, nil, line("ada@example.com", "", good), "", "cannot be read"},
		"rubbish of OpenPGP":        {func([]byte) string { return "-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----\n" }, ring, "", "", "is not good"},
		"another kind":              {func([]byte) string { return "-----BEGIN SIGNED MESSAGE-----\nMII\n" }, ring, "", "", "OpenPGP and SSH are"},
	} {
		t.Run(name, func(t *testing.T) {
			_, repo := server(t)
			id := repo.Make(gittest.Spec{Branch: "main", Files: map[string]string{"a.hcl": "1"}, Sign: c.sign})
			r := open(t, repo.URL(), gitsource.Shallow, verify(gitsource.VerifyHead, c.keys, c.allow))
			s, err := r.Read(bounded(t), resolve(t, r, main))
			if c.reason == "" {
				require.NoError(t, err)
				require.Equal(t, c.signer, s.Commit.Signer)
				return
			}
			unverified := &gitsource.Unverified{}
			require.ErrorAs(t, err, &unverified)
			require.Equal(t, "commit "+id[:12], unverified.Object)
			require.Contains(t, unverified.Reason, c.reason)
			require.Empty(t, s.Files)
		})
	}
}

// A signature that is carried over to other content, at any byte of the commit.
func TestTamperedCommitsAreNotVerified(t *testing.T) {
	key, _ := gittest.SSHKey(t, gittest.Ed25519)
	pgp, ring := gittest.OpenPGPKey(t, "ada", root0, 0)
	for name, sign := range map[string]gittest.Signer{
		"SSH": gittest.SSHSigner(t, key, "git"), "OpenPGP": gittest.OpenPGPSigner(t, pgp, root0.Add(time.Hour)),
	} {
		t.Run(name, func(t *testing.T) {
			_, repo := server(t)
			other := repo.Make(gittest.Spec{Branch: "other", Parents: []string{}, Files: map[string]string{"a.hcl": "evil"}})
			evil := strings.Fields(string(repo.Bytes(other)))[1]
			id := repo.Make(gittest.Spec{Branch: "main", Files: map[string]string{"a.hcl": "1"}, Message: "honest words", Sign: sign})
			raw := repo.Bytes(id)
			tree := strings.Fields(string(raw))[1]
			r := open(t, repo.URL(), gitsource.Mirror, verify(gitsource.VerifyHead, ring, line("ada", "", key)))
			for what, tampered := range map[string][]byte{
				"another tree":     bytes.Replace(raw, []byte(tree), []byte(evil), 1),
				"another message":  bytes.Replace(raw, []byte("honest"), []byte("hostil"), 1),
				"another author":   bytes.Replace(raw, []byte("Ada Example"), []byte("Eve Example"), 1),
				"a second tree":    bytes.Replace(raw, []byte("author "), []byte("tree "+evil+"\nauthor "), 1),
				"a tree before":    append([]byte("tree "+evil+"\n"), raw...),
				"two signatures":   bytes.Replace(raw, []byte("gpgsig "), []byte("gpgsig x\ngpgsig "), 1),
				"a tree behind":    bytes.Replace(raw, []byte("gpgsig "), []byte("tree "+evil+"\ngpgsig "), 1),
				"a further header": bytes.Replace(raw, []byte("gpgsig "), []byte("encoding latin1\ngpgsig "), 1),
			} {
				require.NotEqual(t, raw, tampered, what)
				repo.ForcePush("main", repo.Raw(plumbing.CommitObject, tampered))
				_, err := r.Read(bounded(t), resolve(t, r, main))
				require.Error(t, err, what)
				require.Regexp(t, "is not verified|cannot be read", err.Error(), what)
			}
			repo.ForcePush("main", id)
			require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, r, main)))
		})
	}
}

func TestSignedTags(t *testing.T) {
	key, _ := gittest.SSHKey(t, gittest.Ed25519)
	pgp, ring := gittest.OpenPGPKey(t, "ada", root0, 0)
	byKey := gittest.SSHSigner(t, key, "git")
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		_, repo := server(t)
		signed := repo.Make(gittest.Spec{Branch: "main", Files: map[string]string{"a.hcl": "1"}, Sign: byKey})
		plain := repo.Make(gittest.Spec{Branch: "main", Files: map[string]string{"a.hcl": "2"}})
		repo.AnnotatedTag("v1.0.0", plain, byKey)
		repo.AnnotatedTag("v1.1.0", plain, gittest.OpenPGPSigner(t, pgp, root0.Add(time.Hour)))
		repo.AnnotatedTag("v1.2.0", plain, nil)
		repo.AnnotatedTag("v1.3.0", signed, byKey)
		repo.Tag("v1.4.0", plain)
		repo.SetRef("refs/tags/v9.0.0", repo.AnnotatedTag("v1.0.0", plain, byKey)) // an old signature under a new name
		for name, c := range map[string]struct {
			mode   gitsource.VerifyMode
			wanted gitsource.Wanted
			signer string
			reason string
		}{
			"SSH":                    {gitsource.VerifyTag, gitsource.Wanted{Tag: "v1.0.0"}, "ada@example.com", ""},
			"OpenPGP":                {gitsource.VerifyTag, gitsource.Wanted{Tag: "v1.1.0"}, "ada <ada@example.com>", ""},
			"unsigned":               {gitsource.VerifyTag, gitsource.Wanted{Tag: "v1.2.0"}, "", "it is not signed"},
			"lightweight":            {gitsource.VerifyTag, gitsource.Wanted{Tag: "v1.4.0"}, "", "a lightweight tag, which has no signature"},
			"branch":                 {gitsource.VerifyTag, main, "", "what is followed is no tag"},
			"under another name":     {gitsource.VerifyTag, gitsource.Wanted{Semver: ">=2"}, "", `says that its name is "v1.0.0"`},
			"both":                   {gitsource.VerifyBoth, gitsource.Wanted{Tag: "v1.3.0"}, "ada@example.com", ""},
			"both, commit unsigned":  {gitsource.VerifyBoth, gitsource.Wanted{Tag: "v1.0.0"}, "", "it is not signed"},
			"head of a tag unsigned": {gitsource.VerifyHead, gitsource.Wanted{Tag: "v1.0.0"}, "", "it is not signed"},
		} {
			t.Run(name, func(t *testing.T) {
				r := open(t, repo.URL(), kind, verify(c.mode, ring, line("ada@example.com", "", key)))
				s, err := r.Read(bounded(t), resolve(t, r, c.wanted))
				if c.reason == "" {
					require.NoError(t, err)
					require.Equal(t, c.signer, s.Commit.Signer)
					return
				}
				unverified := &gitsource.Unverified{}
				require.ErrorAs(t, err, &unverified)
				require.Contains(t, unverified.Reason, c.reason)
			})
		}
	})
}

// The tag moves between the list and the fetch: neither the old nor the new one is read.
func TestSignedTagThatMovesBeforeItIsRead(t *testing.T) {
	key, _ := gittest.SSHKey(t, gittest.Ed25519)
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		_, repo := server(t)
		c := repo.Commit("main", map[string]string{"a.hcl": "1"})
		repo.AnnotatedTag("v1", c, gittest.SSHSigner(t, key, "git"))
		r := open(t, repo.URL(), kind, verify(gitsource.VerifyTag, nil, line("ada", "", key)))
		at := resolve(t, r, gitsource.Wanted{Tag: "v1"})
		repo.AnnotatedTag("v1", c, nil)
		_, err := r.Read(bounded(t), at)
		require.IsType(t, &gitsource.Gone{}, err)
	})
}
