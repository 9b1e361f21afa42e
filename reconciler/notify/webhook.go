package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Secret reads a secret when it is needed, so that it may change.
type Secret func() (string, error)

// Webhook posts events as JSON. With a key it signs them: the header X-Sluice-Signature is
// "sha256=" and the hex HMAC-SHA256, under that key, of the header X-Sluice-Timestamp (in
// Unix seconds), a dot, and the body. X-Sluice-Delivery is the same for an event that
// comes twice. Redirects are not followed.
type Webhook struct {
	URL    Secret
	Sign   Secret // nil for no signature
	Client *http.Client
	Now    func() time.Time
}

// body is an event on the wire.
type body struct {
	ID         string            `json:"id"`
	Kind       string            `json:"kind"`
	At         time.Time         `json:"at"`
	Repository string            `json:"repository,omitempty"`
	Stack      string            `json:"stack,omitempty"`
	Endpoint   string            `json:"endpoint,omitempty"`
	Commit     string            `json:"commit,omitempty"`
	RolloutID  string            `json:"rollout_id,omitempty"`
	Severity   Severity          `json:"severity"`
	Title      string            `json:"title"`
	Text       string            `json:"text"`
	URL        string            `json:"url,omitempty"`
	Fields     map[string]string `json:"fields,omitempty"`
	Reminder   int               `json:"reminder,omitempty"` // the how manieth
}

func encode(e Event) ([]byte, error) {
	return json.Marshal(body{
		ID: e.ID(), Kind: e.Kind, At: e.At.UTC(), Repository: e.Repository, Stack: e.Stack, Endpoint: e.Endpoint, Commit: e.Commit,
		RolloutID: e.RolloutID, Severity: e.Severity, Title: e.Title, Text: e.Text, URL: e.URL, Fields: e.Fields, Reminder: e.Reminder,
	})
}

// Notify posts one event.
func (w *Webhook) Notify(ctx context.Context, e Event) error {
	text, err := encode(e)
	if err != nil {
		return &Refused{Why: err.Error()}
	}
	header := http.Header{"X-Sluice-Delivery": {e.ID()}}
	if w.Sign != nil {
		key, err := w.Sign()
		if err != nil {
			return fmt.Errorf("read the key of the signature: %w", err)
		}
		stamp := strconv.FormatInt(w.Now().Unix(), 10)
		header.Set("X-Sluice-Timestamp", stamp)
		header.Set("X-Sluice-Signature", "sha256="+signature(key, stamp, text))
	}
	return post(ctx, w.Client, w.URL, header, text)
}

func signature(key, stamp string, text []byte) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(stamp + "."))
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil))
}

// plain is the client of who brings none. An answer that takes longer is a try that failed.
var plain = &http.Client{Timeout: 15 * time.Second}

// post sends JSON to an address that is a secret: it is in no error.
func post(ctx context.Context, client *http.Client, to Secret, header http.Header, text []byte) error {
	address, err := to()
	if err != nil {
		return fmt.Errorf("read the address: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil || req.URL.Host == "" || req.URL.Scheme != "https" && req.URL.Scheme != "http" {
		return errors.New("the address is no http:// or https:// URL")
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "sluice")
	if client == nil {
		client = plain
	}
	still := *client
	still.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := still.Do(req)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err
		}
		return fmt.Errorf("post: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be used again
	return judge(res)
}

// judge classes an answer by what helps.
func judge(res *http.Response) error {
	why := "the receiver answered " + res.Status
	switch {
	case res.StatusCode/100 == 2:
		return nil
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable:
		seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
		if err == nil && seconds > 0 {
			return &Later{After: time.Duration(min(seconds, 86400)) * time.Second, Why: why}
		}
	case res.StatusCode == http.StatusBadRequest, res.StatusCode == http.StatusRequestEntityTooLarge, res.StatusCode == http.StatusUnprocessableEntity:
		return &Refused{Why: why}
	}
	return errors.New(why) // also a wrong address or key: somebody may mend it
}
