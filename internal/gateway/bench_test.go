package gateway

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkEndToEnd sends a small chat request through a gateway on loopback,
// client and replica in the same process, and beside it straight to the replica.
func BenchmarkEndToEnd(b *testing.B) {
	answer := []byte(`{"choices":[{"message":{"content":"` + strings.Repeat("word ", 180) + `"}}]}`)
	replica := upstream(b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	})
	g := start(b, Config{}, moving(1, 10, serves("a", replica), serves("b", replica)))
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 64
	body := `{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 50) + `"}],"model":"acme/chat"}`
	for name, one := range map[string]gate{"direct": {g.Gateway, "http://" + replica}, "gateway": g} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if a := one.post(context.Background(), "/v1/chat/completions", body); a.status != http.StatusOK {
						b.Error(a)
						return
					}
				}
			})
		})
	}
}

// BenchmarkServeHTTP is the gateway's own part: from a parsed request to an
// answer in memory, with a replica that is a loopback connection.
func BenchmarkServeHTTP(b *testing.B) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go canned(l)
	g := New(Config{})
	if err := g.Apply(moving(1, 10, serves("a", l.Addr().String()), serves("b", l.Addr().String()))); err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	body := `{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 50) + `"}],"model":"acme/chat"}`
	b.ReportAllocs()
	for b.Loop() {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		w := &discard{header: http.Header{}}
		g.ServeHTTP(w, r)
		if w.status != http.StatusOK {
			b.Fatal(w.status)
		}
	}
}

// canned answers every read with one small response.
func canned(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			in, out := make([]byte, 64<<10), []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
			for {
				if _, err := c.Read(in); err != nil {
					return
				}
				if _, err := c.Write(out); err != nil {
					return
				}
			}
		}()
	}
}

// discard is a writer that keeps the status only.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
