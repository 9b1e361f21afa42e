package modelserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/internal/modelserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hello = `{"model":"m","messages":[{"role":"user","content":"one two three"}]}`

// post calls the handler without a network, so that time may be virtual.
func post(t *testing.T, h http.Handler, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	return do(h, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
}

func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	return do(h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
}

// events splits a stream into the payloads of its data lines.
func events(t *testing.T, body string) []string {
	t.Helper()
	var list []string
	for _, part := range strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		payload, ok := strings.CutPrefix(part, "data: ")
		require.True(t, ok, "not an event: %q", part)
		list = append(list, payload)
	}
	return list
}

func TestHealthAndAnswersAre503UntilTheColdStartIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modelserver.New(modelserver.Config{Model: "m", ColdStart: time.Minute})
		time.Sleep(time.Minute - time.Nanosecond)
		h := get(t, s, "/health")
		require.Equal(t, 503, h.Code)
		require.Equal(t, "loading", gjson.Get(h.Body.String(), "status").String())
		a := post(t, s, "/v1/chat/completions", hello)
		require.Equal(t, 503, a.Code)
		require.Equal(t, "service_unavailable", gjson.Get(a.Body.String(), "error.code").String())
		require.Equal(t, "1", a.Header().Get("Retry-After"))
		time.Sleep(time.Nanosecond)
		require.Equal(t, 200, get(t, s, "/health").Code)
		require.Equal(t, 200, post(t, s, "/v1/chat/completions", hello).Code)
	})
}

func TestChatAnswerHasTheOpenAIShape(t *testing.T) {
	now := time.Unix(1_700_000_000, 5)
	s := modelserver.New(modelserver.Config{Model: "m", Tokens: 5, Now: func() time.Time { return now }})
	w := post(t, s, "/v1/chat/completions", hello)
	require.Equal(t, 200, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	body := w.Body.String()
	require.Equal(t, "chat.completion", gjson.Get(body, "object").String())
	require.Equal(t, "m", gjson.Get(body, "model").String())
	require.EqualValues(t, 1_700_000_000, gjson.Get(body, "created").Int())
	require.Regexp(t, "^chatcmpl-[0-9a-f]{24}$", gjson.Get(body, "id").String())
	require.Regexp(t, "^fp_[0-9a-f]{10}$", gjson.Get(body, "system_fingerprint").String())
	require.Equal(t, "assistant", gjson.Get(body, "choices.0.message.role").String())
	require.Len(t, strings.Fields(gjson.Get(body, "choices.0.message.content").String()), 5)
	require.Equal(t, "stop", gjson.Get(body, "choices.0.finish_reason").String())
	require.JSONEq(t, `{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}`, gjson.Get(body, "usage").Raw)
}

func TestTheRequestsCapShortensTheAnswerAndNamesTheReason(t *testing.T) {
	s := modelserver.New(modelserver.Config{Tokens: 5})
	for body, want := range map[string]struct {
		tokens int64
		finish string
	}{
		`{"model":"m","messages":[{"content":"x"}],"max_tokens":3}`:                             {3, "length"},
		`{"model":"m","messages":[{"content":"x"}],"max_completion_tokens":2}`:                  {2, "length"},
		`{"model":"m","messages":[{"content":"x"}],"max_tokens":4,"max_completion_tokens":2}`:   {2, "length"},
		`{"model":"m","messages":[{"content":"x"}],"max_tokens":5}`:                             {5, "stop"},
		`{"model":"m","messages":[{"content":[{"type":"text","text":"x y"}]}],"max_tokens":99}`: {5, "stop"},
	} {
		got := post(t, s, "/v1/chat/completions", body).Body.String()
		require.Equal(t, want.tokens, gjson.Get(got, "usage.completion_tokens").Int(), body)
		require.Equal(t, want.finish, gjson.Get(got, "choices.0.finish_reason").String(), body)
	}
}

func TestStreamedChatIsRoleThenDeltasThenReasonThenUsageThenDone(t *testing.T) {
	s := modelserver.New(modelserver.Config{Tokens: 3})
	w := post(t, s, "/v1/chat/completions",
		`{"model":"m","messages":[{"role":"user","content":"a b"}],"stream":true,"stream_options":{"include_usage":true}}`)
	require.Equal(t, "text/event-stream; charset=utf-8", w.Header().Get("Content-Type"))
	list := events(t, w.Body.String())
	require.Len(t, list, 7) // role, 3 tokens, reason, usage, end
	require.Equal(t, "assistant", gjson.Get(list[0], "choices.0.delta.role").String())
	id := gjson.Get(list[0], "id").String()
	for _, e := range list[:6] {
		require.Equal(t, "chat.completion.chunk", gjson.Get(e, "object").String())
		require.Equal(t, id, gjson.Get(e, "id").String())
	}
	for _, e := range list[1:4] {
		require.NotEmpty(t, gjson.Get(e, "choices.0.delta.content").String())
		require.Equal(t, "null", gjson.Get(e, "choices.0.finish_reason").Raw)
		require.Equal(t, "null", gjson.Get(e, "usage").Raw)
	}
	require.Equal(t, "stop", gjson.Get(list[4], "choices.0.finish_reason").String())
	require.Equal(t, "[]", gjson.Get(list[5], "choices").Raw)
	require.EqualValues(t, 5, gjson.Get(list[5], "usage.total_tokens").Int())
	require.Equal(t, "[DONE]", list[6])
}

func TestAStreamThatDidNotAskGetsNoUsage(t *testing.T) {
	s := modelserver.New(modelserver.Config{Tokens: 1})
	for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
		w := post(t, s, path, `{"model":"m","prompt":"p","messages":[{"content":"x"}],"stream":true}`)
		require.NotContains(t, w.Body.String(), `"usage"`)
		require.True(t, strings.HasSuffix(w.Body.String(), "data: [DONE]\n\n"))
	}
}

func TestCompletionsAnswerOneChoiceAPrompt(t *testing.T) {
	s := modelserver.New(modelserver.Config{Tokens: 2})
	for body, want := range map[string]struct{ choices, prompt int64 }{
		`{"model":"m","prompt":"a b c"}`:        {1, 3},
		`{"model":"m","prompt":["a b","c"]}`:    {2, 3},
		`{"model":"m","prompt":[1,2,3,4]}`:      {1, 4},
		`{"model":"m","prompt":[[1,2],[3,4]]}`:  {2, 4},
		`{"model":"m","prompt":["a",[1,2,33]]}`: {2, 4},
	} {
		got := post(t, s, "/v1/completions", body).Body.String()
		require.Equal(t, "text_completion", gjson.Get(got, "object").String(), got)
		require.Equal(t, want.choices, gjson.Get(got, "choices.#").Int(), body)
		require.Equal(t, want.prompt, gjson.Get(got, "usage.prompt_tokens").Int(), body)
		require.Equal(t, 2*want.choices, gjson.Get(got, "usage.completion_tokens").Int(), body)
	}
	list := events(t, post(t, s, "/v1/completions", `{"model":"m","prompt":["a","b"],"stream":true}`).Body.String())
	require.Len(t, list, 7) // twice two tokens and a reason, end
	require.EqualValues(t, 1, gjson.Get(list[5], "choices.0.index").Int())
	require.Equal(t, "stop", gjson.Get(list[5], "choices.0.finish_reason").String())
}

func TestEmbeddingsAreUnitVectorsThatDependOnTheText(t *testing.T) {
	s := modelserver.New(modelserver.Config{Seed: 7})
	ask := func(body string) string { return post(t, s, "/v1/embeddings", body).Body.String() }
	first := ask(`{"model":"m","input":["a","b","a"],"dimensions":5}`)
	require.Equal(t, gjson.Get(first, "data.0.embedding").Raw, gjson.Get(first, "data.2.embedding").Raw)
	require.NotEqual(t, gjson.Get(first, "data.0.embedding").Raw, gjson.Get(first, "data.1.embedding").Raw)
	norm := 0.0
	for _, x := range gjson.Get(first, "data.1.embedding").Array() {
		norm += x.Float() * x.Float()
	}
	require.InDelta(t, 1, norm, 1e-6)
	require.EqualValues(t, 3, gjson.Get(first, "usage.total_tokens").Int())
	require.Len(t, gjson.Get(ask(`{"model":"m","input":"a"}`), "data.0.embedding").Array(), 8)
	require.Len(t, gjson.Get(ask(`{"model":"m","input":"a","encoding_format":"base64"}`), "data.0.embedding").String(), 44)
}

func TestEveryRefusalHasTheOpenAIForm(t *testing.T) {
	s := modelserver.New(modelserver.Config{Model: "m"})
	chat := "/v1/chat/completions"
	for _, tc := range []struct {
		method, path, body string
		status             int
		param              string
	}{
		{"POST", chat, `{"model":`, 400, ""},
		{"POST", chat, `{} {}`, 400, ""},
		{"POST", chat, `{"messages":[{"content":"x"}]}`, 400, "model"},
		{"POST", chat, `{"model":"other","messages":[{"content":"x"}]}`, 404, "model"},
		{"POST", chat, `{"model":"m"}`, 400, "messages"},
		{"POST", chat, `{"model":"m","messages":[{"content":7}]}`, 400, ""},
		{"POST", chat, `{"model":"m","messages":[{"content":"x"}],"n":2}`, 400, "n"},
		{"POST", chat, `{"model":"m","messages":[{"content":"x"}],"max_tokens":0}`, 400, "max_tokens"},
		{"POST", chat, `{"model":"m","messages":[{"content":"x"}],"stream_options":{}}`, 400, "stream_options"},
		{"POST", "/v1/completions", `{"model":"m"}`, 400, "prompt"},
		{"POST", "/v1/completions", `{"model":"m","prompt":[true]}`, 400, ""},
		{"POST", "/v1/embeddings", `{"model":"m","input":[]}`, 400, ""},
		{"POST", "/v1/embeddings", `{"model":"m","input":"x","dimensions":0}`, 400, "dimensions"},
		{"POST", "/v1/embeddings", `{"model":"m","input":"x","encoding_format":"hex"}`, 400, "encoding_format"},
		{"GET", chat, ``, 405, ""},
		{"POST", "/health", ``, 405, ""},
		{"GET", "/nowhere", ``, 404, ""},
		{"POST", chat, `"` + strings.Repeat("x", 33<<20) + `"`, 413, ""},
	} {
		w := do(s, httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader(tc.body)))
		got := w.Body.String()
		require.Equal(t, tc.status, w.Code, "%s %.80s: %.200s", tc.path, tc.body, got)
		require.NotEmpty(t, gjson.Get(got, "error.message").String())
		require.Equal(t, "invalid_request_error", gjson.Get(got, "error.type").String())
		require.Equal(t, tc.param, gjson.Get(got, "error.param").String(), "%.80s", tc.body)
		require.True(t, gjson.Get(got, "error.code").Exists())
	}
}

func TestTheDeclaredShareOfCallsFails(t *testing.T) {
	s := modelserver.New(modelserver.Config{ErrorRate: 0.2, Seed: 3})
	failed := 0
	for range 2000 {
		switch w := post(t, s, "/v1/chat/completions", hello); w.Code {
		case 500:
			require.Equal(t, "server_error", gjson.Get(w.Body.String(), "error.type").String())
			failed++
		default:
			require.Equal(t, 200, w.Code)
		}
	}
	require.InDelta(t, 400, failed, 4*math.Sqrt(2000*0.2*0.8))
	always := modelserver.New(modelserver.Config{ErrorRate: 1})
	require.Equal(t, 500, post(t, always, "/v1/embeddings", `{"model":"m","input":"x"}`).Code)
	require.Equal(t, 400, post(t, always, "/v1/embeddings", `{`).Code)
}

func TestSameSeedAndCallsGiveTheSameAnswers(t *testing.T) {
	now := time.Unix(9, 0)
	answers := func(seed uint64) (list []string) {
		s := modelserver.New(modelserver.Config{Seed: seed, ErrorRate: 0.3, Now: func() time.Time { return now }})
		for range 20 {
			list = append(list, post(t, s, "/v1/chat/completions", hello).Body.String())
		}
		return list
	}
	require.Equal(t, answers(1), answers(1))
	require.NotEqual(t, answers(1), answers(2))
}

func TestLatencyIsSpreadOverTheTokensOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modelserver.New(modelserver.Config{Tokens: 4, Latency: modelserver.Constant(4 * time.Second)})
		begin := time.Now()
		post(t, s, "/v1/chat/completions", hello)
		require.Equal(t, 4*time.Second, time.Since(begin))

		begin = time.Now()
		rec := &timed{ResponseRecorder: httptest.NewRecorder()}
		s.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions",
			strings.NewReader(strings.Replace(hello, "{", `{"stream":true,`, 1))))
		var at []time.Duration
		for _, ts := range rec.at {
			at = append(at, ts.Sub(begin))
		}
		s1 := time.Second
		// role at once, the first token after a quarter, the others evenly, reason and end at once
		require.Equal(t, []time.Duration{0, s1, 2 * s1, 3 * s1, 4 * s1, 4 * s1, 4 * s1}, at)
	})
}

// timed notes when each event was written.
type timed struct {
	*httptest.ResponseRecorder
	at []time.Time
}

func (r *timed) Write(b []byte) (int, error) {
	r.at = append(r.at, time.Now())
	return r.ResponseRecorder.Write(b)
}

func TestAClientThatLeavesEndsTheCall(t *testing.T) {
	for _, body := range []string{hello, strings.Replace(hello, "{", `{"stream":true,`, 1)} {
		synctest.Test(t, func(t *testing.T) {
			s := modelserver.New(modelserver.Config{Latency: modelserver.Constant(time.Hour)})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			begin := time.Now()
			w := do(s, httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
			require.Equal(t, 50*time.Millisecond, time.Since(begin))
			require.NotContains(t, w.Body.String(), "[DONE]")
		})
	}
}

func TestModelsListsTheServedModel(t *testing.T) {
	got := get(t, modelserver.New(modelserver.Config{Model: "meta/llama"}), "/v1/models").Body.String()
	require.Equal(t, "meta/llama", gjson.Get(got, "data.0.id").String())
	require.Equal(t, "[]", gjson.Get(get(t, modelserver.New(modelserver.Config{}), "/v1/models").Body.String(), "data").Raw)
}

// serve runs the server on loopback and returns its address and how to end it.
func serve(t *testing.T, cfg modelserver.Config) (addr string, end func() error) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- modelserver.New(cfg).Run(ctx, l) }()
	end = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = end() })
	return l.Addr().String(), end
}

// open sends a streamed chat and returns once the first event arrived.
func open(t *testing.T, addr string) (*http.Response, *bufio.Reader) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/v1/chat/completions",
		strings.NewReader(strings.Replace(hello, "{", `{"stream":true,`, 1)))
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	r := bufio.NewReader(resp.Body)
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	require.True(t, json.Valid([]byte(strings.TrimPrefix(line, "data: "))))
	return resp, r
}

func TestARunThatEndsLetsAnswersInFlightFinish(t *testing.T) {
	addr, end := serve(t, modelserver.Config{Tokens: 4, Latency: modelserver.Constant(300 * time.Millisecond)})
	resp, r := open(t, addr)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Contains(t, string(rest), "data: [DONE]")
	require.NoError(t, <-ended)
	var d net.Dialer
	_, err = d.DialContext(t.Context(), "tcp", addr)
	require.Error(t, err)
}

func TestAnAnswerThatOutlastsTheDrainIsCutAndReported(t *testing.T) {
	addr, end := serve(t, modelserver.Config{Latency: modelserver.Constant(time.Hour), DrainTimeout: 20 * time.Millisecond})
	resp, r := open(t, addr)
	defer func() { _ = resp.Body.Close() }()
	require.ErrorIs(t, end(), context.DeadlineExceeded)
	_, err := io.ReadAll(r)
	require.Error(t, err)
}

func TestAnIdleConnectionIsClosedAfterKeepAlive(t *testing.T) {
	addr, _ := serve(t, modelserver.Config{KeepAlive: 20 * time.Millisecond})
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	all, err := io.ReadAll(conn) // ends only when the server closes
	require.NoError(t, err)
	require.Contains(t, string(all), `"status":"ok"`)
}

func TestStartServesUntilStopped(t *testing.T) {
	addr, stop, err := modelserver.Start(modelserver.Config{Latency: modelserver.Constant(time.Hour)})
	require.NoError(t, err)
	resp, r := open(t, addr)
	defer func() { _ = resp.Body.Close() }()
	stop()
	stop()
	_, err = io.ReadAll(r)
	require.Error(t, err)
	_, _, err = modelserver.Start(modelserver.Config{ErrorRate: math.NaN()})
	require.Error(t, err)
}
