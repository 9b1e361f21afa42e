package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// goLoad is a load generator for machines without wrk: raw connections, a request
// that is patched in place, and no more parsing than finding an answer's end.
type goLoad struct{}

func (goLoad) String() string {
	return "a client in Go (wrk is not installed)"
}

func (goLoad) send(ctx context.Context, address string, connections int, d time.Duration, round int, _ string) (load, error) {
	until := time.Now().Add(d)
	before, _ := cpuOf(selfPID)
	workers := make([]*goConnection, connections)
	var all sync.WaitGroup
	began := time.Now()
	for i := range workers {
		w := newGoConnection(address, 100_000_000+round%10*10_000_000+i*100_000)
		workers[i] = w
		all.Go(func() { w.run(ctx, until) })
	}
	all.Wait()
	l := load{elapsed: time.Since(began)}
	sum := newHistogram()
	for _, w := range workers {
		l.requests += w.answered
		l.failed += w.failed
		sum.Merge(w.latency)
		if w.err != nil {
			return l, fmt.Errorf("load on %s: %w", address, w.err)
		}
	}
	l.p50, l.p99 = float64(sum.ValueAtQuantile(50))/1e6, float64(sum.ValueAtQuantile(99))/1e6
	after, _ := cpuOf(selfPID)
	l.cpu = after - before
	return l, ctx.Err()
}

// newHistogram is of nanoseconds up to a minute.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(100, int64(time.Minute), 3) }

// goConnection is one connection of goLoad.
type goConnection struct {
	address          string
	request          []byte
	places           []int // where the user's number stands
	number           int
	latency          *hdrhistogram.Histogram
	answered, failed int64
	err              error
}

func newGoConnection(address string, first int) *goConnection {
	c := &goConnection{address: address, request: []byte(chatRequest()), number: first, latency: newHistogram()}
	for at := 0; ; {
		next := bytes.Index(c.request[at:], []byte(user))
		if next < 0 {
			return c
		}
		c.places = append(c.places, at+next)
		at += next + userDigits
	}
}

func (c *goConnection) run(ctx context.Context, until time.Time) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.address)
	if err != nil {
		c.err = err
		return
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	in := make([]byte, 64<<10)
	for sent := time.Now(); sent.Before(until); {
		ok, err := c.exchange(conn, in)
		if err != nil {
			c.err = err
			return
		}
		now := time.Now()
		_ = c.latency.RecordValue(now.Sub(sent).Nanoseconds()) // beyond a minute is no value
		sent = now
		c.answered++
		if !ok {
			c.failed++
		}
	}
}

// exchange sends the next request and reads its answer, and reports whether that was
// a 200.
func (c *goConnection) exchange(conn net.Conn, in []byte) (bool, error) {
	c.number++
	for _, at := range c.places {
		strconv.AppendInt(c.request[at:at], int64(c.number), 10)
	}
	if _, err := conn.Write(c.request); err != nil {
		return false, err
	}
	for n := 0; ; {
		got, err := conn.Read(in[n:])
		if err != nil {
			return false, err
		}
		n += got
		if size, err := answerSize(in[:n]); err != nil || size > 0 && n >= size {
			return bytes.HasPrefix(in, []byte("HTTP/1.1 200 ")), err
		}
	}
}

var errNoLength = errors.New("an answer without Content-Length")

// answerSize is the length of an answer with its head; 0 while the head is not whole.
func answerSize(b []byte) (int, error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0, nil
	}
	const name = "Content-Length: "
	at := bytes.Index(b[:end], []byte(name))
	if at < 0 {
		return 0, errNoLength
	}
	digits, _, _ := bytes.Cut(b[at+len(name):end+2], []byte("\r"))
	n, err := strconv.Atoi(string(digits))
	return end + 4 + n, err
}
