// Command mock is the benchmarks' upstream: it answers every chat request at once
// with the same kilobyte, or with a stream of timestamped events, and counts what it
// answered. It parses no more than it must, so that it is never what is measured.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	port := flag.Int("port", 0, "port on 127.0.0.1; 0 takes a free one")
	note := flag.String("note", "", "file to which the address is written once it listens")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *port, *note)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, port int, note string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	if note != "" {
		if err := announce(note, l.Addr().String()); err != nil {
			return err
		}
	}
	m := &mock{answer: response("application/json", completion())}
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go m.serve(c)
	}
}

// announce writes the address whole or not at all, since somebody waits for it.
func announce(file, address string) error {
	part := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".part")
	if err := os.WriteFile(part, []byte(address), 0o600); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// completion is a chat completion of about a kilobyte.
func completion() string {
	return `{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("lorem ipsum dolor sit amet ", 29) +
		`"},"finish_reason":"stop"}],"usage":{"prompt_tokens":42,"completion_tokens":180,"total_tokens":222}}`
}

func response(kind, body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", kind, len(body), body)
}

// mock answers POST with the completion, or with events when the body asks for a
// stream; GET /count with the number of POSTs so far; any other GET with ok.
type mock struct {
	answer []byte
	posts  atomic.Int64
}

var (
	headEnd = []byte("\r\n\r\n")
	length  = []byte("Content-Length: ")
	stream  = []byte(`"stream":true`)
)

// serve answers one connection's requests, one after the other, until it ends.
func (m *mock) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	buf, n := make([]byte, 64<<10), 0
	for {
		size := whole(buf[:n])
		if size == 0 {
			got, err := c.Read(buf[n:])
			if err != nil || n == len(buf) {
				return
			}
			n += got
			continue
		}
		if err := m.reply(c, buf[:size]); err != nil {
			return
		}
		n = copy(buf, buf[size:n])
	}
}

// whole returns the length of the first request in b, 0 while it is not complete.
func whole(b []byte) int {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return 0
	}
	size := end + len(headEnd)
	if at := bytes.Index(b[:end], length); at >= 0 {
		digits, _, _ := bytes.Cut(b[at+len(length):size], []byte("\r"))
		n, err := strconv.Atoi(string(digits))
		if err != nil {
			return 0
		}
		size += n
	}
	if size > len(b) {
		return 0
	}
	return size
}

func (m *mock) reply(w io.Writer, request []byte) error {
	out := m.answer
	switch {
	case bytes.HasPrefix(request, []byte("POST ")):
		m.posts.Add(1)
		if bytes.Contains(request, stream) {
			return events(w)
		}
	case bytes.HasPrefix(request, []byte("GET /count ")):
		out = response("text/plain", strconv.FormatInt(m.posts.Load(), 10))
	default:
		out = response("text/plain", "ok")
	}
	_, err := w.Write(out)
	return err
}

// How a stream goes: so many events, so far apart.
const (
	eventsPerStream = 50
	eventGap        = 10 * time.Millisecond
)

// events sends a stream in which every event carries the instant at which it was
// written, in nanoseconds since 1970 by this machine's clock.
func events(w io.Writer) error {
	if _, err := io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		return err
	}
	every := time.NewTicker(eventGap)
	defer every.Stop()
	for range eventsPerStream {
		<-every.C
		event := fmt.Sprintf("data: {\"at\":%d}\n\n", time.Now().UnixNano())
		if _, err := fmt.Fprintf(w, "%x\r\n%s\r\n", len(event), event); err != nil {
			return err
		}
	}
	const done = "data: [DONE]\n\n"
	_, err := fmt.Fprintf(w, "%x\r\n%s\r\n0\r\n\r\n", len(done), done)
	return err
}
