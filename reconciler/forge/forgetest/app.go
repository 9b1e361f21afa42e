package forgetest

import "crypto/rsa"

// app is an installed GitHub App.
type app struct {
	id   int64
	slug string
	key  *rsa.PublicKey
	sent int // tokens that were given out
}

// InstallApp makes the GitHub server know an installation of an App. It gives out the
// world's token to who signs with the private key.
func (w *World) InstallApp(installation, id int64, slug string, key *rsa.PublicKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.apps[installation] = app{id: id, slug: slug, key: key}
}

// AppTokens counts the tokens that an installation was given.
func (w *World) AppTokens(installation int64) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.apps[installation].sent
}
