package reconciler

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

func TestNotificationsTravelAsTheConfigurationSays(t *testing.T) {
	var posted []http.Header
	var bodies []string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		posted, bodies = append(posted, r.Header), append(bodies, string(text))
	}))
	defer s.Close()
	secrets := map[Secret]string{{Env: "URL"}: s.URL, {File: "sign"}: "key"}
	read := func(s Secret) (string, error) {
		if v, ok := secrets[s]; ok {
			return v, nil
		}
		return "", errors.New("no such secret")
	}
	var out bytes.Buffer
	to := Destinations([]NotifyConfig{
		{Name: "signed", Kind: Webhook, URL: Secret{Env: "URL"}, Sign: Secret{File: "sign"}, Remind: time.Hour, Events: []string{"x.*"}},
		{Name: "plain", Kind: Webhook, URL: Secret{Env: "URL"}},
		{Name: "chat", Kind: Slack, URL: Secret{Env: "URL"}},
		{Name: "log", Kind: Stdout},
		{Name: "lost", Kind: Slack, URL: Secret{Env: "NONE"}},
	}, Senders{Read: read, Client: s.Client(), Now: time.Now, Out: &out})
	require.Len(t, to, 5)
	require.Equal(t, []any{"signed", time.Hour, []string{"x.*"}}, []any{to[0].Name, to[0].Remind, to[0].Events})
	e := notify.Event{Key: []string{"a"}, Title: "hello", Severity: notify.Info}
	for _, d := range to[:4] {
		require.NoError(t, d.Notifier.Notify(t.Context(), e), d.Name)
	}
	require.ErrorContains(t, to[4].Notifier.Notify(t.Context(), e), "no such secret")
	require.Len(t, posted, 3)
	require.NotEmpty(t, posted[0].Get("X-Sluice-Signature"))
	require.Empty(t, posted[1].Get("X-Sluice-Signature"))
	require.Contains(t, bodies[2], `"blocks"`)
	require.Contains(t, out.String(), `"title":"hello"`)
}

// What is configured is what goes out: over HTTP, from the process as it is put together.
func TestAReconcilerPostsWhatHappens(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	var mu sync.Mutex
	heard := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		heard[r.URL.Path]++
		if r.URL.Path == "/signed" && r.Header.Get("X-Sluice-Signature") == "" {
			heard["unsigned"]++
		}
	}))
	defer s.Close()
	w := newStage(t)
	w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.config.Notify = []NotifyConfig{
		{Name: "signed", Kind: Webhook, URL: Secret{Env: "SIGNED"}, Sign: Secret{Env: "KEY"}},
		{Name: "chat", Kind: Slack, URL: Secret{Env: "CHAT"}},
	}
	t.Setenv("SIGNED", s.URL+"/signed")
	t.Setenv("CHAT", s.URL+"/chat")
	t.Setenv("KEY", "key")
	w.begin()
	require.NoError(t, w.pass())
	require.Positive(t, heard["/signed"])
	require.Equal(t, heard["/signed"], heard["/chat"])
	require.Zero(t, heard["unsigned"])
}
