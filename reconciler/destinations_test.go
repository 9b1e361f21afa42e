package reconciler

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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
