package gitsource

import (
	"fmt"
	"strings"
	"time"
)

// Failures are told by the reaction that they need. *Gone: poll the refs again.
// *Limited: wait until an instant. *Refused, *HostKey, *TooMuch, *Unverified and
// *Conflict: a person has to change something. Anything else: try again with a
// back-off. None has a secret in its text.

// Gone is a commit that no ref of the remote has (any more): the ref has moved or was
// deleted since it was listed.
type Gone struct {
	Commit string
	Why    string
}

func (g *Gone) Error() string {
	return fmt.Sprintf("commit %s cannot be fetched: %s", short(g.Commit), g.Why)
}

// Limited is a remote that asks to be left alone for a while.
type Limited struct {
	Host  string
	Until time.Time
}

func (l *Limited) Error() string {
	return fmt.Sprintf("%s has had too many calls and asks to wait until %s", l.Host, l.Until.UTC().Format(time.RFC3339))
}

// Refused is an answer that a repetition would not change.
type Refused struct {
	What string // what was tried, at which address
	Why  string
	Hint string
}

func (r *Refused) Error() string { return sentence(r.What+": "+r.Why, r.Hint) }

// HostKey is an SSH server whose key is not the pinned one. Nothing was sent to it.
type HostKey struct {
	Address     string   // host:port
	Offered     string   // fingerprint, SHA256:…; empty when the server has no key of a pinned kind
	Kind        string   // of the offered key, such as ssh-ed25519
	Pinned      []string // fingerprints with their kinds; empty when none is pinned
	KnownHosts  string   // the line that would pin the offered key; empty when nothing was offered
	Revoked     bool
	Certificate bool // the offered key is a certificate
}

func (h *HostKey) Error() string {
	switch {
	case h.Revoked:
		return fmt.Sprintf("host key of %s is revoked by known_hosts: %s %s", h.Address, h.Kind, h.Offered)
	case h.Certificate:
		return fmt.Sprintf("host key not pinned: %s offers a certificate (%s) of no certificate authority in known_hosts", h.Address, h.Kind)
	case len(h.Pinned) == 0:
		return sentence(fmt.Sprintf("host key not pinned: known_hosts has no key for %s, which offers %s %s", h.Address, h.Kind, h.Offered),
			"compare the fingerprint with the one that the host's owner publishes, and add this line to known_hosts: "+h.KnownHosts)
	case h.Offered == "":
		return sentence(fmt.Sprintf("host key not pinned: %s has no key of the kind that is pinned (%s)", h.Address, strings.Join(h.Pinned, ", ")),
			"pin a key that the host has")
	default:
		return sentence(fmt.Sprintf("host key of %s is another one than pinned: it offers %s %s, pinned are %s", h.Address, h.Kind, h.Offered, strings.Join(h.Pinned, ", ")),
			"find out why before you change known_hosts: somebody may be in between")
	}
}

// TooMuch is a remote or a tree that is larger than its limit.
type TooMuch struct {
	What  string // such as "the pack", "the watched files"
	Limit string // with its unit
	Hint  string
}

func (t *TooMuch) Error() string {
	return sentence(fmt.Sprintf("%s: more than the limit of %s", t.What, t.Limit), t.Hint)
}

// Conflict is a merge that needs a person.
type Conflict struct {
	Base, Head string // commits
	Files      []string
	Why        string // when it is not about files
}

func (c *Conflict) Error() string {
	text := fmt.Sprintf("%s cannot be merged into %s", short(c.Head), short(c.Base))
	if c.Why != "" {
		return text + ": " + c.Why
	}
	return sentence(text+": both changed "+strings.Join(c.Files, ", "), "merge or rebase by hand and push")
}

// Unverified is a commit or tag whose signature is not there or not good. Nothing of
// its tree was read.
type Unverified struct {
	Object string // "commit 1a2b3c4d5e6f" or "tag v1.2.0"
	Reason string
}

func (u *Unverified) Error() string {
	return fmt.Sprintf("%s is not verified: %s; nothing of it was read", u.Object, u.Reason)
}

// Stuck is the refusal of a new call while too many earlier ones hang.
type Stuck struct{ Remote, Calls string }

func (s *Stuck) Error() string {
	return fmt.Sprintf("%s: %s calls have not ended long after their deadline, so no new one begins; it goes on when they end", s.Remote, s.Calls)
}

// short is a commit id as people read it.
func short(commit string) string { return printable(commit[:min(len(commit), 12)]) }

func sentence(text, hint string) string {
	if hint == "" {
		return text
	}
	return text + "; " + hint
}
