package engineclient

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// keyring holds the API key, and knows where to read it again.
type keyring struct {
	renew func() (string, error) // nil for a key that stays

	mu  sync.Mutex
	key string
}

func (k *keyring) current() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.key
}

// renewed reads the key again after used was refused, and reports whether there is
// another one now.
func (k *keyring) renewed(used string) bool {
	if k.renew == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != used { // another call has read it meanwhile
		return true
	}
	fresh, err := k.renew()
	if fresh = strings.TrimSpace(fresh); err != nil || fresh == "" {
		return false
	}
	k.key = fresh
	return fresh != used
}

// renewing makes a call again with another key when the first was refused: a token
// that expired in the middle of a long wait is no end of it. A call that is refused
// with 401 has done nothing, so that repeating it is safe.
type renewing struct {
	next Doer
	keys *keyring
}

func (r renewing) Do(ctx context.Context, req Request) (Response, error) {
	used := r.keys.current()
	answer, err := r.next.Do(ctx, req)
	if err == nil && answer.Status == http.StatusUnauthorized && r.keys.renewed(used) {
		return r.next.Do(ctx, req)
	}
	return answer, err
}

// keyGrace is how long a wait outlives a refused key whose source may soon have
// another one.
const keyGrace = time.Minute
