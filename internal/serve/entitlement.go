package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// EntitlementFile names who is asked before a rollout scales its target up. Without a
// url nobody is.
type EntitlementFile struct {
	URL      string `yaml:"url"`
	TokenEnv string `yaml:"token_env"` // environment variable with a bearer token
	Timeout  Span   `yaml:"timeout"`   // of one question, default 5 s
}

const (
	entitlementTimeout = 5 * time.Second
	longestTimeout     = 30 * time.Second // a worker of the engine waits for the answer
)

// check refuses what could not be asked, and a token that others could read.
func (f EntitlementFile) check() error {
	under := func(key string) []any { return at("entitlement", key) }
	if f.URL == "" {
		if f != (EntitlementFile{}) {
			return wrongField(at("entitlement"), "it has no url, so nobody would be asked")
		}
		return nil
	}
	u, err := url.Parse(f.URL)
	switch {
	case err != nil:
		return wrongField(under("url"), "it is not a URL") // the parser's message has the text, which may hold a secret
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return wrongField(under("url"), "use http://HOST/PATH or https://HOST/PATH")
	case u.User != nil:
		return wrongField(under("url"), "a user or password does not belong here; name an environment variable with a token in token_env")
	case u.Fragment != "":
		return wrongField(under("url"), "a part behind # is never sent; leave it out")
	case time.Duration(f.Timeout) > longestTimeout:
		return wrongField(under("timeout"), "%s is longer than %s, and the engine waits for it", time.Duration(f.Timeout), longestTimeout)
	case f.TokenEnv == "":
		return nil
	case os.Getenv(f.TokenEnv) == "":
		return wrongField(under("token_env"), "the environment variable %q is empty or not set", f.TokenEnv)
	case u.Scheme == "http" && !isLoopback(net.JoinHostPort(u.Hostname(), "80")):
		return wrongField(under("url"), "a token over plain HTTP can be read by others; use https")
	}
	return nil
}

// billing makes the engine's port; nil when nobody is to be asked.
func (f EntitlementFile) billing() (engine.Entitlement, error) {
	if f.URL == "" {
		return nil, nil //nolint:nilnil // no port, no check
	}
	u, err := url.Parse(f.URL)
	if err != nil {
		return nil, errors.New("entitlement.url is not a URL")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert,errcheck // it is one
	transport.DisableKeepAlives = true                           // a question every few minutes
	return &billing{url: *u, token: os.Getenv(f.TokenEnv), client: http.Client{
		Transport: transport, CheckRedirect: sameHost, Timeout: cmp.Or(time.Duration(f.Timeout), entitlementTimeout),
	}}, nil
}

// billing asks over HTTP.
type billing struct {
	url    url.URL
	token  string
	client http.Client
}

// sameHost follows redirects within the host alone: the question and its token are
// nobody else's. Another answer is then the redirect itself, which is no answer.
func sameHost(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; req.URL.Host != first.Host || req.URL.Scheme != first.Scheme || len(via) > 5 {
		return http.ErrUseLastResponse
	}
	return nil
}

// Check asks whether a project may have so many replicas of a deployment: nil is yes, a
// *rollout.Lapse no, any other error no answer.
func (b *billing) Check(ctx context.Context, project string, d rollout.Deployment, replicas int) error {
	u := b.url
	q := u.Query()
	q.Set("project", project)
	q.Set("deployment", d.ID)
	q.Set("hardware", d.Hardware)
	q.Set("replicas", strconv.Itoa(replicas))
	u.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("ask %s: not a request", b.url.Host)
	}
	req.Header.Set("Accept", "application/json, text/plain")
	if b.token != "" {
		req.Header.Set("Authorization", "Bearer "+b.token)
	}
	res, err := b.client.Do(req)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err // without the whole URL
		}
		return fmt.Errorf("ask %s: %w", b.url.Host, err)
	}
	defer func() { _ = res.Body.Close() }()
	switch {
	case res.StatusCode/100 == 2:
		return nil
	case res.StatusCode == http.StatusPaymentRequired || res.StatusCode == http.StatusForbidden:
		return &rollout.Lapse{Reason: cmp.Or(reasonIn(res.Body), "the answer was "+res.Status)}
	case res.StatusCode/100 == 3:
		return fmt.Errorf("ask %s: it answered %s, and another host is not asked", b.url.Host, res.Status)
	}
	return fmt.Errorf("ask %s: it answered %s", b.url.Host, res.Status)
}

// maxReason is how many bytes of a refusal are shown.
const maxReason = 300

// reasonIn reads why the billing says no: the message of a JSON object, or the text.
func reasonIn(body io.Reader) string {
	text, _ := io.ReadAll(io.LimitReader(body, 8<<10)) // a text that is cut off says enough
	var object struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &object) == nil && object.Message != "" {
		return oneLine(object.Message)
	}
	return oneLine(string(text))
}

// oneLine makes any text one line that can be printed, of at most maxReason bytes.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxReason {
		return text
	}
	cut := maxReason - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
