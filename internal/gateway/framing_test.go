package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// The framing must be the same however the bytes are cut into reads.
func TestTheFramingDoesNotDependOnWhereTheReadsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream strings.Builder
		for range rapid.IntRange(0, 4).Draw(t, "requests before") {
			body := rapid.StringMatching(`(\r\n|Content-Length: 7|Transfer-Encoding: chunked|[a-z{}":]){0,20}`).Draw(t, "body")
			fmt.Fprintf(&stream, "POST / HTTP/1.1\r\nHost: x\r\nX: %s\r\ncontent-LENGTH:  %d\r\n\r\n%s",
				rapid.StringMatching(`[a-z]{0,100}`).Draw(t, "header"), len(body), body)
		}
		both := rapid.Bool().Draw(t, "both")
		stream.WriteString("POST / HTTP/1.1\r\n")
		if both {
			stream.WriteString("Content-Length: 3\r\n")
		}
		stream.WriteString("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nContent-Length: 9\r\n\r\n")
		var f framing
		for rest := stream.String(); rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "read")
			f.follow([]byte(rest[:n]))
			rest = rest[n:]
		}
		assert.True(t, f.coded.Load())
		assert.Equal(t, both, f.both.Load())
	})
}

func FuzzTheFramingTakesAnyBytes(f *testing.F) {
	for _, c := range ambiguous {
		f.Add([]byte(c.bytes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var once, bytewise framing
		once.follow(b)
		for i := range b {
			bytewise.follow(b[i : i+1])
		}
		assert.Equal(t, once.both.Load(), bytewise.both.Load())
		assert.Equal(t, once.body, bytewise.body)
		assert.False(t, once.body < 0)
	})
}

func BenchmarkFollow(b *testing.B) {
	body := strings.Repeat("x", 316)
	one := []byte(post11("User-Agent: a client\r\nAccept: */*\r\nContent-Type: application/json\r\nAuthorization: Bearer key\r\nContent-Length: 316\r\n", body))
	var f framing
	b.ReportAllocs()
	for b.Loop() {
		f.follow(one)
	}
	assert.False(b, f.ended)
}
