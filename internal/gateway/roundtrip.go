package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// request is one request in the form in which it is sent: the head, and the body in
// pieces, or both in one when the body is small.
type request struct {
	head   []byte
	pieces [3][]byte
	lent   *[]byte // what head is in
}

// copiedBody is the largest body that is sent in one write with the head: copying it
// costs less than sending it from four places.
const copiedBody = 4 << 10

// heads are lent to requests.
var heads = sync.Pool{New: func() any { b := make([]byte, 0, copiedBody+1<<10); return &b }}

// free gives the head's buffer back.
func (q *request) free() {
	if cap(q.head) <= keptBody {
		*q.lent = q.head[:0]
		heads.Put(q.lent)
	}
	q.head, q.lent = nil, nil
}

// send writes the request.
func (q *request) send(w io.Writer) error {
	if len(q.pieces[0]) == 0 {
		_, err := w.Write(q.head)
		return err
	}
	buffers := net.Buffers{q.head, q.pieces[0], q.pieces[1], q.pieces[2]}
	_, err := buffers.WriteTo(w)
	return err
}

// encode writes the head for one replica. A large body stays in its pieces.
func (x *exchange) encode(m *member, address string) request {
	pieces := x.call.spliced(x.body.bytes, m.model)
	length := 0
	for _, p := range pieces {
		length += len(p)
	}
	lent := heads.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	b := (*lent)[:0]
	b = append(b, "POST "...)
	b = append(b, x.path...)
	if x.r.URL.RawQuery != "" {
		b = append(b, '?')
		b = append(b, strings.ReplaceAll(x.r.URL.RawQuery, " ", "%20")...) // HTTP/2 lets one through
	}
	b = append(b, " HTTP/1.1\r\n"...)
	b = appendHeader(b, "Host", address)
	b = appendRequestHeaders(b, x.r)
	b = appendHeader(b, "Content-Length", strconv.Itoa(length))
	b = append(b, "\r\n"...)
	if length > copiedBody {
		return request{head: b, pieces: pieces, lent: lent}
	}
	for _, p := range pieces {
		b = append(b, p...)
	}
	return request{head: b, lent: lent}
}

// roundTrip sends the request and reads the head of its answer. The connection
// is closed when ctx ends, at any moment until release; a failed one is closed
// by the time that it returns.
func (c *conn) roundTrip(ctx context.Context, q *request) (*reply, error) {
	r := &reply{conn: c, unwatch: context.AfterFunc(ctx, func() { _ = c.Close() })}
	c.expectHead()
	sendErr := q.send(c.Conn)
	// Also after a failed send: a replica that refuses a request early answers and
	// closes without reading all of it.
	response, err := c.readHead() //nolint:bodyclose // the reply ends with release or discard
	if err != nil {
		r.discard()
		return nil, errors.Join(sendErr, err)
	}
	c.expectBody()
	r.Response = response
	r.reusable = sendErr == nil && !response.Close
	return r, nil
}

// maxInterim bounds the interim responses before the final one.
const maxInterim = 8

// readHead reads the head of the final response, passing over a few interim ones.
func (c *conn) readHead() (*http.Response, error) {
	for range maxInterim + 1 {
		response, err := http.ReadResponse(c.reader, nil) //nolint:bodyclose // the exchange reads it to its end or closes the connection
		switch {
		case err != nil:
			return nil, err
		case response.ProtoMajor != 1 || response.StatusCode < http.StatusContinue:
			return nil, fmt.Errorf("the replica answered %s %s, which is no answer of HTTP/1", response.Proto, response.Status)
		case hasSpacedName(response.Header):
			return nil, errSpacedName
		case response.StatusCode >= http.StatusOK:
			return response, nil
		case response.StatusCode == http.StatusSwitchingProtocols:
			return nil, fmt.Errorf("the replica answered %s to a request that did not ask for it", response.Status)
		}
	}
	return nil, errors.New("the replica sent one interim response after the other")
}

var errSpacedName = errors.New("the replica sent a header with a space in its name")

// hasSpacedName tells what net/http lets pass in a response: "Content-Length : 2" would
// be an unknown header, and the body one that ends with the connection.
func hasSpacedName(h http.Header) bool {
	for name := range h {
		if strings.IndexByte(name, ' ') >= 0 {
			return true
		}
	}
	return false
}

// reply is the head of an answer and the connection on which its body follows.
type reply struct {
	*http.Response
	conn     *conn
	unwatch  func() bool
	reusable bool
	done     bool
}

// release gives the connection back after the body was read to its end.
func (r *reply) release() {
	if r.done {
		return
	}
	// A connection that the context's end may be closing right now is lost, and one
	// on which more than the answer came is not to be trusted.
	if !r.unwatch() || !r.reusable || r.conn.reader.Buffered() > 0 {
		r.discard()
		return
	}
	r.done = true
	r.conn.pool.put(r.conn)
}

// discard closes the connection, which tells the replica that nobody listens.
func (r *reply) discard() {
	if r.done {
		return
	}
	r.done = true
	r.unwatch()
	_ = r.conn.Close()
}
