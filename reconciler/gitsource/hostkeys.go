package gitsource

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	skeema "github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// pins are the host keys that are trusted, and no other.
type pins struct{ db *skeema.HostKeyDB }

// newPins reads known_hosts. The libraries read files only, so it is one for a moment.
func newPins(text []byte) (*pins, error) {
	f, err := os.CreateTemp("", "known_hosts-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	db, err := skeema.NewDB(f.Name())
	if err != nil {
		return nil, fmt.Errorf("known_hosts cannot be read: %s", printable(err.Error()))
	}
	return &pins{db}, nil
}

// algorithms are those of the keys that are pinned for an address, so that a server
// with several keys shows the one that can be compared; all when none is pinned.
func (p *pins) algorithms(address string) []string { return p.db.HostKeyAlgorithms(address) }

// pinned are kind and fingerprint of each key that is pinned for an address.
func (p *pins) pinned(address string) []string {
	var all []string
	for _, k := range p.db.HostKeys(address) {
		all = append(all, k.Type()+" "+ssh.FingerprintSHA256(k))
	}
	slices.Sort(all)
	return all
}

// callback refuses all keys but the pinned ones; the call hears why.
func (p *pins) callback(c *call) ssh.HostKeyCallback {
	check := p.db.HostKeyCallback()
	return func(address string, remote net.Addr, key ssh.PublicKey) error {
		err := check(address, remote, key)
		if err == nil {
			return nil
		}
		refusal := &HostKey{Address: address, Offered: ssh.FingerprintSHA256(key), Kind: key.Type(), Pinned: p.pinned(address)}
		if revoked := (*knownhosts.RevokedError)(nil); errors.As(err, &revoked) {
			refusal.Revoked = true
		}
		if _, ok := key.(*ssh.Certificate); ok {
			refusal.Certificate = true
		} else {
			refusal.KnownHosts = knownhosts.Line([]string{knownhosts.Normalize(address)}, key)
		}
		return c.met(refusal)
	}
}
