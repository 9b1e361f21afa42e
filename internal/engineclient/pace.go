package engineclient

import (
	"bytes"
	"context"
	"math"
	"sync"
	"time"
)

// paced holds attempts back so that no more than so many a second leave, all callers
// of a client together. A second's worth may leave at once.
type paced struct {
	next  Doer
	every time.Duration // between two attempts in the long run
	burst time.Duration // how far attempts may run ahead of that

	mu  *sync.Mutex
	due *time.Time // when the next attempt would leave at an even pace
}

func newPaced(next Doer, perSecond float64) paced {
	every := time.Duration(float64(time.Second) / perSecond)
	ahead := time.Duration(math.Ceil(perSecond)-1) * every
	return paced{next: next, every: every, burst: ahead, mu: &sync.Mutex{}, due: &time.Time{}}
}

func (p paced) Do(ctx context.Context, req Request) (Response, error) {
	if wait := p.reserve(time.Now()); wait > 0 {
		if err := sleep(ctx, wait); err != nil {
			return Response{}, err
		}
	}
	return p.next.Do(ctx, req)
}

// reserve takes the next place and returns how long it is until then.
func (p paced) reserve(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.due.Before(now) {
		*p.due = now
	}
	wait := p.due.Sub(now) - p.burst
	*p.due = p.due.Add(p.every)
	return wait
}

// secretive takes the API key out of whatever comes back, so that a peer which
// echoes it cannot bring it into a message or a log.
type secretive struct {
	next Doer
	keys *keyring
}

// shortestSecret is the length below which a key might be an ordinary word of an answer.
const shortestSecret = 8

func (s secretive) Do(ctx context.Context, req Request) (Response, error) {
	key := []byte(s.keys.current())
	answer, err := s.next.Do(ctx, req)
	if len(key) >= shortestSecret && bytes.Contains(answer.Body, key) {
		answer.Body = bytes.ReplaceAll(answer.Body, key, []byte("[the API key]"))
	}
	return answer, err
}
