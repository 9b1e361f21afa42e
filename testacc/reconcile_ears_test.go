package testacc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/stretchr/testify/require"
)

// ears are a webhook with a signature and a chat that hear of what happens.
type ears struct {
	w    *followed
	mu   sync.Mutex
	told []notification
	chat []string
}

// notification is what a webhook's body has of an event.
type notification struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Endpoint string `json:"endpoint"`
	Severity string `json:"severity"`
	Title    string `json:"title"`
}

// listens makes the reconcilers that are started from now on tell a webhook and a chat.
func (w *followed) listens() *ears {
	w.t.Helper()
	e := &ears{w: w}
	s := httptest.NewServer(http.HandlerFunc(e.hear))
	w.t.Cleanup(s.Close)
	w.secret("notify-hook", s.URL+"/hook")
	w.secret("notify-chat", s.URL+"/chat")
	w.secret("notify-key", "key of the signature")
	w.replace("limits {", `notify "hook" {
  kind      = "webhook"
  url_file  = "notify-hook"
  sign_file = "notify-key"
}

notify "on-call" {
  kind     = "slack"
  url_file = "notify-chat"
  events   = ["rollout.*"]
}

limits {`)
	return e
}

func (e *ears) hear(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.URL.Path == "/chat" {
		e.chat = append(e.chat, string(body))
		return
	}
	mac := hmac.New(sha256.New, []byte("key of the signature"))
	mac.Write([]byte(r.Header.Get("X-Sluice-Timestamp") + "."))
	mac.Write(body)
	var n notification
	if !hmac.Equal([]byte(r.Header.Get("X-Sluice-Signature")), []byte("sha256="+hex.EncodeToString(mac.Sum(nil)))) || json.Unmarshal(body, &n) != nil {
		n = notification{Kind: "of a wrong signature or body"}
		rw.WriteHeader(http.StatusBadRequest)
	}
	e.told = append(e.told, n)
}

// heard are the kinds of what the webhook was told of the endpoint, in their order. Each was
// told once.
func (e *ears) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var kinds []string
	ids := map[string]bool{}
	for _, n := range e.told {
		require.False(e.w.t, ids[n.ID], "told twice: %+v", n)
		ids[n.ID] = true
		kinds = append(kinds, n.Kind)
	}
	return kinds
}
