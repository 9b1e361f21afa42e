package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
)

// A request that gives both a length and chunks may end elsewhere for a proxy in front
// than it does here, and what lies between is a request that nobody but the gateway
// sees. net/http drops the length before a handler can see it, so:
//
//   - the connection is closed after each request in chunks, whatever else it says.
//     That alone leaves nothing to smuggle, and costs the few clients that send chunks
//     a connection each;
//   - on plain connections the heads are read along (see framing), so that such a
//     request is answered 400. Were that to lose its place, the first rule still holds.

// watchedListener hands out connections whose framing is followed.
type watchedListener struct{ net.Listener }

// Accept leaves a TLS connection as it is: net/http must see it to speak HTTP/2.
func (l watchedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if _, secure := c.(*tls.Conn); secure {
		return c, nil
	}
	return &watched{Conn: c}, nil
}

// watched is a client's connection.
type watched struct {
	net.Conn
	framing framing
}

func (c *watched) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.framing.follow(p[:n])
	return n, err
}

// CloseWrite is what net/http ends a connection with, so that an answer given before the
// whole request was read is not lost to a reset.
func (c *watched) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type watchedKey struct{}

// withFraming lets the requests of a connection find its framing.
func withFraming(ctx context.Context, c net.Conn) context.Context {
	if w, ok := c.(*watched); ok {
		return context.WithValue(ctx, watchedKey{}, &w.framing)
	}
	return ctx
}

// misframed closes the connection after a request in chunks, and reports whether the
// request must be refused: one with a length and chunks, and one of HTTP/1.0 with chunks,
// which that does not know. It is to be called before the body is read.
func misframed(w http.ResponseWriter, r *http.Request) bool {
	inChunks := len(r.TransferEncoding) > 0
	if !inChunks && r.ProtoAtLeast(1, 1) {
		return false
	}
	f, _ := r.Context().Value(watchedKey{}).(*framing)
	bad := f != nil && (inChunks && f.both.Load() || !inChunks && f.coded.Load())
	if inChunks || bad {
		w.Header().Set("Connection", "close")
	}
	return bad
}

// framing reads along the heads of a connection's requests, and of the bodies the length
// only. It ends at the first request in chunks, since the connection is closed after it,
// and at one that net/http will refuse, so what it says is about that request.
type framing struct {
	coded atomic.Bool // the last request names a transfer coding
	both  atomic.Bool // and a length

	ended  bool
	body   int64    // bytes of a body that are still to come
	lines  int      // of the head so far
	length int64    // that the head names
	named  bool     // it names one
	line   [64]byte // the beginning of the current line
	held   int      // bytes of the current line so far, also those beyond
}

// follow takes the next bytes of the connection.
func (f *framing) follow(b []byte) {
	for len(b) > 0 && !f.ended {
		if f.body > 0 {
			n := min(f.body, int64(len(b)))
			f.body -= n
			b = b[n:]
			continue
		}
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			f.hold(b)
			return
		}
		f.hold(b[:end])
		b = b[end+1:]
		f.endLine()
	}
}

func (f *framing) hold(b []byte) {
	if f.held < len(f.line) {
		copy(f.line[f.held:], b)
	}
	f.held += len(b)
}

// endLine takes a line of a head, the empty one at its end included. As net/http does,
// it passes over empty lines before a head.
func (f *framing) endLine() {
	line := bytes.TrimSuffix(f.line[:min(f.held, len(f.line))], []byte("\r"))
	switch {
	case len(line) > 0:
		f.lines++
		f.header(line)
	case f.lines > 0:
		f.endHead()
	}
	f.held = 0
}

var (
	transferEncoding = []byte("Transfer-Encoding")
	contentLength    = []byte("Content-Length")
)

// header notes a line if it is one of those that frame a body.
func (f *framing) header(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case bytes.EqualFold(name, transferEncoding):
		f.coded.Store(true)
	case bytes.EqualFold(name, contentLength):
		n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
		if err != nil || n < 0 || f.held > len(f.line) || f.named && n != f.length {
			f.ended = true // refused by net/http, or of a form that nobody sends
			return
		}
		f.length, f.named = n, true
	}
}

func (f *framing) endHead() {
	if f.coded.Load() {
		f.both.Store(f.named)
		f.ended = true
		return
	}
	f.body, f.lines, f.length, f.named = f.length, 0, 0, false
}
