package gateway

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/meter"
)

// copies are lent to streams.
var copies = sync.Pool{New: func() any { b := make([]byte, 8<<10); return &b }}

// relay passes the answer on and counts how it ended. Its order: the connection
// is given back or closed first, then the replica is released, then the request
// is counted, so that a drain that returns has left nothing open.
func (x *exchange) relay(out outcome) {
	class := meter.ServerError // if a panic comes between
	defer func() { x.flight.End(class) }()
	defer out.station.replica.release()
	defer out.discard()

	x.body.free() // nothing can be replayed any more
	copyResponseHeaders(x.w.Header(), out.Header)
	x.sign(out.member.header, out.station.replica)
	x.w.WriteHeader(out.StatusCode)

	err := x.stream(out.reply)
	class = x.classify(err, out.StatusCode)
	if err != nil {
		if class == meter.ServerError {
			out.station.failed(x.gateway.log)
			x.gateway.log.Warn("replica died within its answer", slog.String("deployment", out.member.deployment),
				slog.String("replica", out.station.replica.id), slog.Any("error", err))
		}
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
	out.station.finished()
	out.release()
}

// errClient wraps an error of the client's connection.
var errClient = errors.New("writing to the client")

// classify tells whose fault an end was. A client that left explains every error
// that follows.
func (x *exchange) classify(err error, status int) meter.Class {
	switch {
	case err != nil && (x.r.Context().Err() != nil || errors.Is(err, errClient)):
		return meter.Canceled
	case err != nil || status >= http.StatusInternalServerError:
		return meter.ServerError
	default:
		return meter.OK
	}
}

// stream copies the body as it comes. It flushes when the replica has nothing
// more at hand: once a burst, not once an event, and at once for the head of an
// answer whose body is not there yet.
func (x *exchange) stream(r *reply) error {
	left := r.ContentLength // -1 for a stream
	out := x.toClient(left)
	if left == 0 {
		return nil
	}
	if r.conn.reader.Buffered() == 0 {
		if err := out.flush(); err != nil {
			return err
		}
	}
	lent := copies.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	defer copies.Put(lent)
	for {
		n, err := r.Body.Read(*lent)
		left -= int64(n)
		if n > 0 {
			if err := out.write((*lent)[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n > 0 && left != 0 && r.conn.reader.Buffered() == 0:
			if err := out.flush(); err != nil {
				return err
			}
		}
	}
}

// client is the way to the client. It holds a write deadline only while it has
// something to write: a deadline that passes during a silence would end the
// stream, and one that is left behind would end the next answer.
type client struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	held    bool // the whole body stays in the server's buffer until a flush or the end
}

// serverBuffer is what net/http's server holds back of a body before it writes.
const serverBuffer = 2 << 10

// toClient opens the way for a body of the given length, -1 for one that is not known.
func (x *exchange) toClient(length int64) client {
	return client{x.w, http.NewResponseController(x.w), x.gateway.config.WriteTimeout, 0 <= length && length <= serverBuffer}
}

func (c client) write(b []byte) error {
	write := func() error {
		_, err := c.w.Write(b)
		return err
	}
	if c.held { // nothing is sent, so nothing can stall
		if err := write(); err != nil {
			return errors.Join(errClient, err)
		}
		return nil
	}
	return c.within(write)
}

func (c client) flush() error {
	return c.within(func() error {
		if err := c.control.Flush(); !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		return nil
	})
}

func (c client) within(do func() error) error {
	_ = c.control.SetWriteDeadline(time.Now().Add(c.timeout)) // a writer without deadlines is a test's
	err := do()
	if err != nil {
		return errors.Join(errClient, err)
	}
	_ = c.control.SetWriteDeadline(time.Time{})
	return nil
}
