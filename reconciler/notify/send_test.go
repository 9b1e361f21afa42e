package notify_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

func secret(s string) notify.Secret { return func() (string, error) { return s, nil } }

// server answers with a status and remembers the last request.
func server(t *testing.T, status int, header http.Header) (url string, last func() (*http.Request, []byte)) {
	t.Helper()
	var req *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req = r
		body, _ = io.ReadAll(r.Body)
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/hooks/geheim", func() (*http.Request, []byte) { return req, body }
}

func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

var nasty = notify.Event{
	Key: []string{"rollout.parked", "rol_1", "2"}, Kind: "rollout.parked", At: start, Repository: "models", Stack: "prod", Endpoint: "chat<!channel>",
	Commit: "0123456789abcdef", RolloutID: "rol_1", Severity: notify.Urgent,
	Title:  "parked <!here> @channel <https://evil.example|click> \x1b[31m\u202e",
	Text:   "see https://evil.example [x](http://evil.example) <@U123> `rm -rf` &amp; </details> www.evil.example mailto:a@evil.example",
	URL:    "https://sluice.example.com/r/rol_1?a=1&b=2",
	Fields: map[string]string{"reason <!everyone>": "@here http://evil.example", "step": "2/3"},
}

func TestAWebhookIsSignedAndSaysWhatHappened(t *testing.T) {
	url, last := server(t, 204, nil)
	w := &notify.Webhook{URL: secret(url), Sign: secret("key"), Client: client(t), Now: func() time.Time { return start }}
	require.NoError(t, w.Notify(t.Context(), nasty))
	req, body := last()
	stamp := req.Header.Get("X-Sluice-Timestamp")
	require.Equal(t, "1772366400", stamp)
	mac := hmac.New(sha256.New, []byte("key"))
	mac.Write([]byte(stamp + "." + string(body)))
	require.Equal(t, "sha256="+hex.EncodeToString(mac.Sum(nil)), req.Header.Get("X-Sluice-Signature"))
	require.Equal(t, nasty.ID(), req.Header.Get("X-Sluice-Delivery"))
	require.Equal(t, "application/json", req.Header.Get("Content-Type"))
	var got map[string]any
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, nasty.ID(), got["id"])
	require.Equal(t, "2026-03-01T12:00:00Z", got["at"])
	require.Equal(t, "rol_1", got["rollout_id"])
	require.Equal(t, nasty.Text, got["text"], "a program gets what there is")

	w.Sign = nil
	require.NoError(t, w.Notify(t.Context(), nasty))
	req, _ = last()
	require.Empty(t, req.Header.Get("X-Sluice-Signature"))
}

func TestAnswersAreClassedByWhatHelps(t *testing.T) {
	var refused *notify.Refused
	var later *notify.Later
	for _, c := range []struct {
		status  int
		header  http.Header
		refused bool
		later   time.Duration
	}{
		{200, nil, false, 0},
		{302, http.Header{"Location": {"http://127.0.0.1:1/"}}, false, 0},
		{400, nil, true, 0},
		{401, nil, false, 0},
		{404, nil, false, 0},
		{413, nil, true, 0},
		{429, http.Header{"Retry-After": {"30"}}, false, 30 * time.Second},
		{429, http.Header{"Retry-After": {"soon"}}, false, 0},
		{503, http.Header{"Retry-After": {"99999999"}}, false, 24 * time.Hour},
		{500, nil, false, 0},
	} {
		url, last := server(t, c.status, c.header)
		err := (&notify.Webhook{URL: secret(url), Client: client(t)}).Notify(t.Context(), nasty)
		req, _ := last()
		require.NotNil(t, req)
		require.Equal(t, c.status == 200, err == nil, c.status)
		require.Equal(t, c.refused, errors.As(err, &refused), c.status)
		if errors.As(err, &later) {
			require.Equal(t, c.later, later.After, c.status)
		} else {
			require.Zero(t, c.later, c.status)
		}
		if err != nil {
			require.NotContains(t, err.Error(), "geheim")
		}
	}
}

func TestAnAddressIsInNoError(t *testing.T) {
	for _, address := range []string{"http://127.0.0.1:1/geheim", "ftp://x/geheim", "geheim", "http://[::1/geheim", "http://user:geheim@127.0.0.1:1/"} {
		for _, n := range []notify.Notifier{
			&notify.Webhook{URL: secret(address), Client: client(t)}, &notify.Slack{URL: secret(address), Client: client(t)},
		} {
			err := n.Notify(t.Context(), nasty)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "geheim")
		}
	}
	missing := func() (string, error) { return "", errors.New("there is no file") }
	require.ErrorContains(t, (&notify.Slack{URL: missing, Client: client(t)}).Notify(t.Context(), nasty), "there is no file")
	require.ErrorContains(t, (&notify.Webhook{URL: secret("http://127.0.0.1:1"), Sign: missing, Client: client(t)}).Notify(t.Context(), nasty), "there is no file")
}

// K11: what others wrote mentions nobody, links nowhere and forges nothing.
func TestK11AChatMessageHoldsNoMentionAndNoLinkOfOthers(t *testing.T) {
	url, last := server(t, 200, nil)
	require.NoError(t, (&notify.Slack{URL: secret(url), Client: client(t)}).Notify(t.Context(), nasty))
	_, body := last()
	var m struct {
		Text      string
		Parse     string
		LinkNames bool `json:"link_names"`
		Blocks    []struct {
			Type     string
			Text     *struct{ Type, Text string }
			Fields   []struct{ Type, Text string }
			Elements []struct{ Type, Text string }
		}
	}
	require.NoError(t, json.Unmarshal(body, &m))
	require.Equal(t, "none", m.Parse)
	require.False(t, m.LinkNames)
	texts, marked := []string{m.Text}, []string{}
	add := func(kind, text string) {
		if kind == "mrkdwn" {
			marked = append(marked, text)
		} else {
			texts = append(texts, text)
		}
	}
	for _, b := range m.Blocks {
		if b.Text != nil {
			add(b.Text.Type, b.Text.Text)
		}
		for _, w := range append(b.Fields, b.Elements...) {
			add(w.Type, w.Text)
		}
	}
	require.Equal(t, []string{"<https://sluice.example.com/r/rol_1?a=1&amp;b=2|Open>"}, marked, "the only link is ours")
	require.Len(t, texts, 6)
	for _, text := range texts {
		for _, bad := range []string{"<", ">", "@channel", "@here", "@U123", "://", "](", "www.", "mailto:", "\x1b", "\u202e"} {
			require.NotContains(t, text, bad)
		}
	}
	require.Contains(t, texts[2], "rm -rf")
}

func TestALinkThatIsNoneIsLeftOutAndLongTextIsCut(t *testing.T) {
	for _, link := range []string{"javascript:alert(1)", "https://a|b", "https://a>b", "https://user@host/", "nothing", "https://x/ y", "https:///x"} {
		url, last := server(t, 200, nil)
		e := notify.Event{Key: []string{link}, Title: strings.Repeat("é<", 5000), Text: strings.Repeat("&", 50_000), URL: link, Fields: map[string]string{}}
		for i := range 30 {
			e.Fields[strings.Repeat("k", i+1)] = strings.Repeat("v", 5000)
		}
		require.NoError(t, (&notify.Slack{URL: secret(url), Client: client(t)}).Notify(t.Context(), e))
		_, body := last()
		require.NotContains(t, string(body), "Open", link)
		require.Less(t, len(body), 40_000)
		var m struct {
			Blocks []struct {
				Type   string
				Text   struct{ Text string }
				Fields []any
			}
		}
		require.NoError(t, json.Unmarshal(body, &m))
		require.LessOrEqual(t, len([]rune(m.Blocks[0].Text.Text)), 150)
		require.LessOrEqual(t, len([]rune(m.Blocks[1].Text.Text)), 3000)
		require.Len(t, m.Blocks[2].Fields, 10)
	}
}

func TestAStreamHasOneLineForEachEvent(t *testing.T) {
	var out bytes.Buffer
	s := &notify.Stream{Out: &out}
	e := nasty
	e.Text, e.Reminder = "first\nsecond\x1b[0m", 2
	require.NoError(t, s.Notify(t.Context(), e))
	s.Format = notify.TextLines
	require.NoError(t, s.Notify(t.Context(), e))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 2)
	require.True(t, json.Valid([]byte(lines[0])))
	require.Equal(t, "2026-03-01T12:00:00Z urgent rollout.parked [repository models · stack prod · endpoint chat<!channel> · commit 0123456789a… · rollout rol_1] parked <!here> @channel <https://evil.example|click> \uFFFD[31m\uFFFD: first second\uFFFD[0m (reminder 2)", lines[1])
}

// A sender that brings no client of its own posts all the same.
func TestASenderWithoutAClientPosts(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	heard := make(chan http.Header, 2)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard <- r.Header }))
	defer s.Close()
	require.NoError(t, (&notify.Webhook{URL: secret(s.URL)}).Notify(t.Context(), nasty))
	require.NoError(t, (&notify.Slack{URL: secret(s.URL)}).Notify(t.Context(), nasty))
	require.NotEmpty(t, (<-heard).Get("X-Sluice-Delivery"))
	require.Equal(t, "application/json", (<-heard).Get("Content-Type"))
}
