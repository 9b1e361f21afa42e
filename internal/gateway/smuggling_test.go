package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The pieces of the corpus: a whole body, the same in chunks, and the request that must
// never reach a replica.
const (
	whole    = `{"model":"acme/chat"}`
	chunks   = "15\r\n" + whole + "\r\n0\r\n\r\n"
	smuggled = "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 39\r\n\r\n" +
		`{"model":"acme/chat","user":"smuggled"}`
)

// post11 is a request with the given header lines and body.
func post11(lines, body string) string {
	return "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + lines + "\r\n" + body
}

// chunked is a request whose body is given as it is sent.
func chunked(body string) string { return post11("Transfer-Encoding: chunked\r\n", body) }

// ambiguous are requests that a proxy in front and the gateway may take for different
// ones, each with the statuses that are answered before the connection is closed.
var ambiguous = []struct {
	name, bytes string
	statuses    []int
}{
	{"a length and chunks", post11("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", chunks+smuggled), []int{400}},
	{"chunks and a length", post11("Transfer-Encoding: chunked\r\nContent-Length: 31\r\n", chunks+smuggled), []int{400}},
	{"chunks and a length, in small letters", post11("transfer-encoding: CHUNKED\r\ncontent-length: 31\r\n", chunks+smuggled), []int{400}},
	{"chunks and a length of zero", post11("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", chunks+smuggled), []int{400}},
	{"chunks and the same length twice", post11("Content-Length: 31\r\nContent-Length: 31\r\nTransfer-Encoding: chunked\r\n", chunks+smuggled), []int{400}},
	{"chunks and a length after much else", post11("X: "+strings.Repeat("y", 9000)+"\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n", chunks+smuggled), []int{400}},
	{"a length and chunks that end early", post11("Content-Length: 200\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled), []int{400}},
	{"a length and chunks, after a good request", post11("Content-Length: 21\r\n", whole) + post11("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", chunks+smuggled), []int{200, 400}},
	{"a length and chunks, lines ended by LF", strings.ReplaceAll(post11("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", ""), "\r\n", "\n") + chunks + smuggled, []int{400}},
	{"a length and chunks for a list of models", "GET /v1/models HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + smuggled, []int{400}},
	{"a length and chunks in HTTP/1.0", "POST /v1/completions HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 21\r\nTransfer-Encoding: chunked\r\n\r\n" + whole + smuggled, []int{400}},
	{"chunks in HTTP/1.0", "POST /v1/completions HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + smuggled, []int{400}},

	{"a request after chunks", chunked(chunks + smuggled), []int{200}},
	{"a request after chunks with a trailer", chunked("15\r\n" + whole + "\r\n0\r\nContent-Length: 5\r\n\r\n" + smuggled), []int{200}},

	{"the coding identity", post11("Content-Length: 21\r\nTransfer-Encoding: identity\r\n", whole+smuggled), []int{501}},
	{"two codings", post11("Transfer-Encoding: gzip, chunked\r\n", chunks+smuggled), []int{501}},
	{"chunked twice in a line", post11("Transfer-Encoding: chunked, chunked\r\n", chunks+smuggled), []int{501}},
	{"chunked in two lines", post11("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunks+smuggled), []int{501}},
	{"chunked and another in two lines", post11("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", chunks+smuggled), []int{501}},
	{"an unknown coding", post11("Transfer-Encoding: xchunked\r\nContent-Length: 21\r\n", whole+smuggled), []int{501}},
	{"a quoted coding", post11("Transfer-Encoding: \"chunked\"\r\nContent-Length: 21\r\n", whole+smuggled), []int{501}},
	{"a coding after a vertical tab", post11("Transfer-Encoding: \vchunked\r\nContent-Length: 21\r\n", whole+smuggled), []int{400}},
	{"a coding with a zero byte", post11("Transfer-Encoding: chunked\x00\r\nContent-Length: 21\r\n", whole+smuggled), []int{400}},
	{"a space before the colon", post11("Transfer-Encoding : chunked\r\nContent-Length: 21\r\n", whole+smuggled), []int{400}},
	{"a tab before the colon", post11("Transfer-Encoding\t: chunked\r\nContent-Length: 21\r\n", whole+smuggled), []int{400}},
	{"a folded first line", "POST /v1/completions HTTP/1.1\r\n Transfer-Encoding: chunked\r\nHost: x\r\nContent-Length: 21\r\n\r\n" + whole + smuggled, []int{400}},
	{"a folded coding", post11("Content-Length: 4\r\nTransfer-Encoding:\r\n chunked\r\n", chunks+smuggled), []int{400}},
	{"a coding behind a bare CR", post11("X: y\rTransfer-Encoding: chunked\r\nContent-Length: 21\r\n", whole+smuggled), []int{400}},
	{"a line without a colon", post11("Transfer-Encoding chunked\r\nContent-Length: 21\r\n", whole+smuggled), []int{400}},
	{"a zero byte in a name", post11("Transfer\x00Encoding: chunked\r\nContent-Length: 21\r\n", whole+smuggled), []int{400}},

	{"two lengths", post11("Content-Length: 21\r\nContent-Length: 5\r\n", whole+smuggled), []int{400}},
	{"two lengths in a line", post11("Content-Length: 21, 5\r\n", whole+smuggled), []int{400}},
	{"a length with a plus", post11("Content-Length: +21\r\n", whole+smuggled), []int{400}},
	{"a length below zero", post11("Content-Length: -21\r\n", whole+smuggled), []int{400}},
	{"a hexadecimal length", post11("Content-Length: 0x15\r\n", whole+smuggled), []int{400}},
	{"a length with a space in it", post11("Content-Length: 2 1\r\n", whole+smuggled), []int{400}},
	{"a length with an underscore", post11("Content-Length: 2_1\r\n", whole+smuggled), []int{400}},
	{"a length beyond 64 bits", post11("Content-Length: 18446744073709551637\r\n", whole+smuggled), []int{400}},
	{"a length of nothing", post11("Content-Length: \r\n", whole+smuggled), []int{400}},
	{"a space before a length's colon", post11("Content-Length : 21\r\n", whole+smuggled), []int{400}},

	{"a chunk's size ended by LF", chunked("15\n" + whole + "\r\n0\r\n\r\n" + smuggled), []int{400}},
	{"a chunk's extension ended by LF", chunked("15;a=b\n" + whole + "\r\n0\r\n\r\n" + smuggled), []int{400}},
	{"a hexadecimal prefix of a chunk's size", chunked("0x15\r\n" + whole + "\r\n0\r\n\r\n" + smuggled), []int{400}},
	{"a plus before a chunk's size", chunked("+15\r\n" + whole + "\r\n0\r\n\r\n" + smuggled), []int{400}},
	{"a minus before a chunk's size", chunked("-1\r\n" + whole + "\r\n0\r\n\r\n" + smuggled), []int{400}},
	{"a chunk without a size", chunked("\r\n" + whole + "\r\n0\r\n\r\n" + smuggled), []int{400}},
	{"a chunk's size beyond 64 bits", chunked("10000000000000015\r\n" + whole + "\r\n0\r\n\r\n" + smuggled), []int{400}},
	{"a chunk longer than its size", chunked("14\r\n" + whole + "\r\n0\r\n\r\n" + smuggled), []int{400}},
	{"a chunk shorter than its size", chunked("16\r\n" + whole + "\r\n0\r\n\r\n" + smuggled), []int{400}},
	{"a chunk ended by LF", chunked("15\r\n" + whole + "\n0\r\n\r\n" + smuggled), []int{400}},
	{"chunks without end", chunked("15\r\n" + whole + "\r\n" + smuggled), []int{400}},

	{"a length that is too short", post11("Content-Length: 5\r\n", whole+smuggled), []int{400, 400}},
	{"a second protocol's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + smuggled, []int{404}},
	{"two hosts", post11("Host: y\r\nContent-Length: 21\r\n", whole+smuggled), []int{400}},
	{"no host", "POST /v1/completions HTTP/1.1\r\nContent-Length: 21\r\n\r\n" + whole + smuggled, []int{400}},
	{"a request within a body of GET", "GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " + fmt.Sprint(len(smuggled)) + "\r\n\r\n" + smuggled, []int{200}},
	{"the same length twice", post11("Connection: close\r\nContent-Length: 21\r\nContent-Length: 21\r\n", whole), []int{200}},
}

// say writes the parts to a fresh connection and returns the statuses that are answered
// until the gateway closes it.
func (g gate) say(t *testing.T, parts ...string) []int {
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	go func() { // the gateway may answer and close before it has read all
		for _, p := range parts {
			if _, err := io.WriteString(c, p); err != nil {
				return
			}
		}
	}()
	var statuses []int
	r := bufio.NewReader(c)
	for {
		if _, err := r.Peek(1); err != nil {
			require.True(t, errors.Is(err, io.EOF) || !isTimeout(err), "the connection is closed: %v", err)
			return statuses
		}
		response, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		statuses = append(statuses, response.StatusCode)
	}
}

// guarded starts a gateway whose replica tells what it was asked, and whether the smuggled
// request was among it.
func guarded(t *testing.T) (g gate, asked *atomic.Int32, reached *atomic.Bool) {
	asked, reached = new(atomic.Int32), new(atomic.Bool)
	g = start(t, Config{}, chat(1, serves("a", upstream(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		b, _ := io.ReadAll(r.Body)
		if strings.Contains(string(b), "smuggled") {
			reached.Store(true)
		}
		_, _ = io.WriteString(w, "{}")
	}))))
	return g, asked, reached
}

func TestNP3NoRequestIsSmuggledAndTheConnectionIsClosed(t *testing.T) {
	g, asked, reached := guarded(t)
	for _, c := range ambiguous {
		t.Run(c.name, func(t *testing.T) {
			asked.Store(0)
			reached.Store(false)
			assert.Equal(t, c.statuses, g.say(t, c.bytes))
			assert.False(t, reached.Load(), "the smuggled request reached a replica")
			assert.LessOrEqual(t, asked.Load(), int32(1))
		})
	}
}

// The same byte by byte: where the reads end must not matter.
func TestNP3NoRequestIsSmuggledInSmallPieces(t *testing.T) {
	g, _, reached := guarded(t)
	for _, c := range ambiguous[:14] {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.statuses, g.say(t, strings.SplitAfter(c.bytes, "")...))
			assert.False(t, reached.Load())
		})
	}
}

func TestAGoodRequestKeepsItsConnectionWhateverItsBodySays(t *testing.T) {
	g, asked, _ := guarded(t)
	body := "{\"model\":\"acme/chat\",\n\"prompt\":\"\\r\\n\\r\\nTransfer-Encoding: chunked\\r\\nContent-Length: 4\"\n}"
	one := post11(fmt.Sprintf("Content-Length: %d\r\n", len(body)), body)
	assert.Equal(t, []int{200, 200, 200, 200}, g.say(t, one+one, one, post11("Connection: close\r\nTransfer-Encoding: chunked\r\n", chunks)))
	assert.EqualValues(t, 4, asked.Load())
}
