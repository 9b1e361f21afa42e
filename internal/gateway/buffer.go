package gateway

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// body is a request's body, held until its answer begins.
type body struct {
	bytes  []byte
	pooled *[]byte
	budget *budget
	held   int64 // bytes of the budget
}

// keptBody is the largest buffer that is kept for the next request.
const keptBody = 64 << 10

// believedLength is how much of a length is believed before as much has come: a length
// that is only claimed must not cost memory.
const believedLength = 1 << 20

var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// borrow gives the body its first buffer, of that size or a larger one. It returns false
// when the budget has no room.
func (b *body) borrow(size int) bool {
	b.pooled = bodies.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	b.bytes = (*b.pooled)[:0]
	if size > cap(b.bytes) {
		return b.grow(size)
	}
	return b.claim(cap(b.bytes))
}

// grow makes the buffer larger. It returns false when the budget has no room.
func (b *body) grow(size int) bool {
	if !b.claim(size) {
		return false
	}
	grown := make([]byte, len(b.bytes), size)
	copy(grown, b.bytes)
	b.bytes = grown
	return true
}

func (b *body) claim(size int) bool {
	more := int64(size) - b.held
	if !b.budget.take(more) {
		return false
	}
	b.held += more
	return true
}

// free gives the buffer and its share of the budget back. Calling it again does nothing.
func (b *body) free() {
	if b.pooled != nil && cap(b.bytes) <= keptBody {
		*b.pooled = b.bytes[:0]
		bodies.Put(b.pooled)
	}
	if b.held > 0 {
		b.budget.give(b.held)
	}
	b.bytes, b.pooled, b.held = nil, nil, 0
}

// nextSize returns how large the buffer of a body is to be after one of the given size
// is full. The length is -1 when it is not known. A buffer holds one byte more than the
// body, to see the end, or that there is none, without growing.
func nextSize(size int, length, limit int64) int {
	switch {
	case length < 0:
		return int(min(2*int64(size), limit+1))
	case length <= believedLength || size > believedLength:
		return int(length + 1)
	default:
		return believedLength + 1
	}
}

// budget bounds the bytes of all bodies that are held at a time.
type budget struct {
	most int64
	held atomic.Int64
}

func (b *budget) take(n int64) bool {
	for {
		held := b.held.Load()
		if held+n > b.most {
			return false
		}
		if b.held.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

func (b *budget) give(n int64) { b.held.Add(-n) }

// slowestBody is how fast a body must come, in bytes a second, once the first
// BodyTimeout is over.
const slowestBody = 64 << 10

// patience is how long a client may take for its body: never silent for BodyTimeout, and
// no longer in all than BodyTimeout and what the bytes that have come take at the slowest
// pace. Else a byte now and then would hold a buffer for ever.
type patience struct {
	control *http.ResponseController
	timeout time.Duration
	begun   time.Time
	renewed time.Time
}

func (g *Gateway) patience(w http.ResponseWriter) patience {
	return patience{control: http.NewResponseController(w), timeout: g.config.BodyTimeout, begun: time.Now()}
}

// renew moves the deadline, now and then only, since that costs more than a read.
func (p *patience) renew(received int) {
	now := time.Now()
	if now.Sub(p.renewed) <= p.timeout/16 {
		return
	}
	p.renewed = now
	silence := now.Add(p.timeout)
	pace := p.begun.Add(p.timeout + time.Duration(received)*time.Second/slowestBody)
	if pace.Before(silence) {
		silence = pace
	}
	_ = p.control.SetReadDeadline(silence) // a writer without deadlines is a test's
}

// end lifts the deadline: the answer may be long in coming.
func (p *patience) end() { _ = p.control.SetReadDeadline(time.Time{}) }
