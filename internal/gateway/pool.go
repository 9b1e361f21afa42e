package gateway

import (
	"bufio"
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"time"
)

// DialFunc opens a connection, as [net.Dialer.DialContext] does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// pool keeps idle connections to one address, and only for a while: model
// servers close theirs after a few seconds, and the race that follows is better
// not run at all.
type pool struct {
	address string
	connect DialFunc
	keep    time.Duration
	routes  int // ready replicas in the routes that have this address; guarded by Gateway.applying

	mu     sync.Mutex
	idle   []*conn // oldest first
	timer  *time.Timer
	closed bool
}

// maxIdle bounds the connections kept to one replica.
const maxIdle = 512

func newPool(address string, connect DialFunc, keep time.Duration) *pool {
	return &pool{address: address, connect: connect, keep: keep}
}

// conn is one connection to a replica, with at most one request on it.
type conn struct {
	net.Conn
	pool     *pool
	reader   *bufio.Reader
	head     int64 // bytes that a response's head may still have
	answered bool  // a byte has come since the request was sent
	kept     time.Time
}

// maxHead bounds the head of a response.
const maxHead = 256 << 10

var errHeadTooLarge = errors.New("the replica's response head is too large")

// Read notes that an answer began, and bounds its head.
func (c *conn) Read(p []byte) (int, error) {
	if c.head <= 0 {
		return 0, errHeadTooLarge
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.head)])
	c.head -= int64(n)
	c.answered = c.answered || n > 0
	return n, err
}

// expectHead readies the connection for the head of the next response.
func (c *conn) expectHead() { c.head, c.answered = maxHead, false }

// expectBody lifts the bound.
func (c *conn) expectBody() { c.head = math.MaxInt64 }

// dial opens a fresh connection.
func (p *pool) dial(ctx context.Context) (*conn, error) {
	nc, err := p.connect(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, pool: p}
	c.reader = bufio.NewReaderSize(c, 4<<10)
	return c, nil
}

// get takes the youngest idle connection, or returns nil.
func (p *pool) get() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	c := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return c
}

// put keeps a connection whose response was read to its end.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= maxIdle {
		_ = c.Close()
		return
	}
	c.kept = time.Now()
	p.idle = append(p.idle, c)
	if p.timer == nil {
		p.timer = time.AfterFunc(p.keep, p.expire)
	}
}

// expire closes what was idle for too long and comes again while something is.
func (p *pool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, now := 0, time.Now()
	for n < len(p.idle) && now.Sub(p.idle[n].kept) >= p.keep {
		_ = p.idle[n].Close()
		n++
	}
	p.idle = append(p.idle[:0], p.idle[n:]...)
	clear(p.idle[len(p.idle) : len(p.idle)+n])
	p.timer = nil
	if len(p.idle) > 0 {
		p.timer = time.AfterFunc(p.keep-now.Sub(p.idle[0].kept), p.expire)
	}
}

// drop closes all idle connections: when one turned out dead, the others of the
// same age are.
func (p *pool) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		_ = c.Close()
	}
	clear(p.idle)
	p.idle = p.idle[:0]
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// close drops the idle connections and keeps none from now on; those in use are
// closed when their response ends.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.drop()
}
