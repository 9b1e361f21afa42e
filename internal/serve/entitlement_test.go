package serve_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/serve"
)

const billingToken = "a-token-that-nobody-else-may-see" //nolint:gosec // of a test

// bills is a billing service over HTTP that answers what a test says.
type bills struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(w http.ResponseWriter, r *http.Request)
	asked  []url.Values
	tokens map[string]bool
}

func newBills(t *testing.T) *bills {
	t.Helper()
	b := &bills{tokens: map[string]bool{}}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked = append(b.asked, r.URL.Query())
		b.tokens[r.Header.Get("Authorization")] = true
		if b.answer != nil {
			b.answer(w, r)
		}
	}))
	t.Cleanup(b.Close)
	return b
}

// say sets the answer; an empty body and status 200 is yes.
func (b *bills) say(status int, body string) {
	b.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func (b *bills) answers(f func(http.ResponseWriter, *http.Request)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = f
}

func (b *bills) questions() []url.Values {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]url.Values(nil), b.asked...)
}

// billed starts a server that asks, and that retries a park after so long.
func billed(t *testing.T, b *bills, retry string) (*serve.Server, *bytes.Buffer) {
	t.Helper()
	t.Setenv("BILLING_TOKEN", billingToken)
	path := filepath.Join(t.TempDir(), "engine.yaml")
	text := strings.Replace(quick, "ready_deadline: 30s", "ready_deadline: 30s, retry_interval: "+retry, 1) +
		fmt.Sprintf("entitlement: {url: %q, token_env: BILLING_TOKEN, timeout: 300ms}\n", b.URL+"/check?plan=basic")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	f, err := serve.ReadFile(path)
	require.NoError(t, err)
	var log bytes.Buffer
	o := options(t, t.TempDir())
	o.File, o.Logger = f, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := serve.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = stop(s) })
	return s, &log
}

// stepped is a canary of two steps, each of which scales the target up by one.
func stepped(source, target string) api.RolloutSpec {
	interval, one, two := api.Duration(200*time.Millisecond), 1, 2
	return api.RolloutSpec{
		SourceDeploymentID: source, TargetDeploymentID: target, FinalTargetReplicas: &two,
		Canary: &api.Canary{StepInterval: &interval, Steps: []api.CanaryStep{{Traffic: 50, Replicas: &one}, {Traffic: 100}}},
	}
}

// refusal is the engine's answer to a call that must be refused.
func refusal(t *testing.T, err error) *api.Error {
	t.Helper()
	var refused *api.Error
	require.ErrorAs(t, err, &refused)
	return refused
}

// parkedAtStepTwo brings a rollout to where the billing, which lapsed after the start,
// forbids the second step.
func parkedAtStepTwo(t *testing.T, b *bills, c *engineclient.Client) (api.Endpoint, api.Deployment, api.Rollout) {
	t.Helper()
	ep, source, target := setting(t, c, "m/a")
	r, err := c.CreateRollout(t.Context(), ep.ID, stepped(source.ID, target.ID), "")
	require.NoError(t, err)
	_, err = c.StartRollout(t.Context(), ep.ID, r.ID)
	require.NoError(t, err)
	b.answers(func(w http.ResponseWriter, r *http.Request) { // one replica is paid for, a second is not
		if r.URL.Query().Get("replicas") != "1" {
			w.WriteHeader(http.StatusPaymentRequired)
			_, _ = io.WriteString(w, `{"message": "invoice 4711\n is overdue", "code": 7}`)
		}
	})
	res, err := c.Await(t.Context(), ep.ID, r.ID, nil)
	require.NoError(t, err)
	require.Equal(t, engineclient.WasParked, res.Outcome)
	return ep, target, res.Rollout
}

func TestABillingThatLapsesParksBeforeTheScaleUp(t *testing.T) {
	b := newBills(t)
	s, log := billed(t, b, "1h")
	c := client(t, s, s.FirstKey)
	ep, target, r := parkedAtStepTwo(t, b, c)
	require.NotNil(t, r.Status.Condition)
	require.Equal(t, "ROLLOUT_FAILURE_CATEGORY_ENTITLEMENT_LAPSED", r.Status.Condition.Category)
	require.Contains(t, r.Status.Condition.Message, "the billing does not allow it: invoice 4711 is overdue; nothing was scaled, the split stays at 50%. Mend the billing and resume, or cancel")
	d, err := c.GetDeployment(t.Context(), ep.ID, target.ID)
	require.NoError(t, err)
	require.Equal(t, 1, *d.Autoscaling.MinReplicas, "nothing was scaled")

	b.say(http.StatusNoContent, "")
	_, err = c.ResumeRollout(t.Context(), ep.ID, r.ID, api.Control{})
	require.NoError(t, err)
	res, err := c.Await(t.Context(), ep.ID, r.ID, nil)
	require.NoError(t, err)
	require.Equal(t, engineclient.Completed, res.Outcome)

	asked := b.questions()
	require.NotEmpty(t, asked)
	require.Equal(t, url.Values{"plan": {"basic"}, "project": {s.Project.ID}, "deployment": {target.ID}, "hardware": {"1xsim"}, "replicas": {"2"}}, asked[0], "the create asks for the most of the whole journey")
	require.Equal(t, map[string]bool{"Bearer " + billingToken: true}, b.tokens)
	require.NoError(t, stop(s))
	require.NotContains(t, log.String(), billingToken)
}

func TestAMendedBillingIsNoticedByTheEnginesOwnRetry(t *testing.T) {
	b := newBills(t)
	s, _ := billed(t, b, "300ms")
	c := client(t, s, s.FirstKey)
	ep, _, r := parkedAtStepTwo(t, b, c)
	b.say(http.StatusOK, "yes")
	require.Eventually(t, func() bool {
		now, err := c.GetRollout(t.Context(), ep.ID, r.ID)
		return err == nil && now.State == engineclient.StateCompleted
	}, 30*time.Second, 20*time.Millisecond)
	retried := 0
	for e, err := range c.Events(t.Context(), ep.ID, engineclient.EventQuery{SubjectID: r.ID}) {
		require.NoError(t, err)
		require.NotEqual(t, "rollout.resumed", e.Type)
		if e.Type == "rollout.retried" {
			retried++
		}
	}
	require.Positive(t, retried)
}

func TestALapseRefusesCreateAndStart(t *testing.T) {
	b := newBills(t)
	s, _ := billed(t, b, "1h")
	c := client(t, s, s.FirstKey)
	ep, source, target := setting(t, c, "m/a")
	spec := stepped(source.ID, target.ID)

	b.say(http.StatusPaymentRequired, "the card\tending in 4711\nwas declined\x1b[2J")
	_, err := c.CreateRollout(t.Context(), ep.ID, spec, "")
	refused := refusal(t, err)
	require.Equal(t, http.StatusBadRequest, refused.Status)
	require.Contains(t, refused.Message, "the card ending in 4711 was declined[2J. Mend the billing")
	require.Equal(t, "targetDeploymentId", refused.Param)
	preview, err := c.PreviewRollout(t.Context(), ep.ID, spec)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(preview.Warnings), "a start would be refused now: the billing check failed")

	b.say(http.StatusBadGateway, "")
	preview, err = c.PreviewRollout(t.Context(), ep.ID, spec)
	require.NoError(t, err, "a plan does without the billing")
	require.NotContains(t, fmt.Sprint(preview.Warnings), "billing")

	b.say(http.StatusOK, "")
	r, err := c.CreateRollout(t.Context(), ep.ID, spec, "")
	require.NoError(t, err)

	b.say(http.StatusForbidden, strings.Repeat("é", 1000))
	_, err = c.StartRollout(t.Context(), ep.ID, r.ID)
	refused = refusal(t, err)
	require.Equal(t, http.StatusBadRequest, refused.Status)
	require.Equal(t, api.CodeFailedPrecondition, refused.Code)
	require.Contains(t, refused.Message, strings.Repeat("é", 148)+"…", "a reason of 300 bytes at most")
	require.NotContains(t, refused.Message, strings.Repeat("é", 149))

	b.say(http.StatusForbidden, "")
	_, err = c.StartRollout(t.Context(), ep.ID, r.ID)
	require.Contains(t, refusal(t, err).Message, "the answer was 403 Forbidden")
	got, err := c.GetRollout(t.Context(), ep.ID, r.ID)
	require.NoError(t, err)
	require.Equal(t, "ROLLOUT_STATE_PENDING", got.State)
}

// An answer that is none is not a lapse: the caller may try again.
func TestABillingThatDoesNotAnswer(t *testing.T) {
	b := newBills(t)
	s, log := billed(t, b, "1h")
	c := client(t, s, s.FirstKey)
	ep, source, target := setting(t, c, "m/a")
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	t.Cleanup(other.Close)
	quickly, err := engineclient.New(engineclient.Config{BaseURL: s.APIURL, APIKey: s.FirstKey, Retries: engineclient.Retries{Attempts: 1}})
	require.NoError(t, err)
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"it answered 500 Internal Server Error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"it answered 404 Not Found":             http.NotFound,
		"it answered 302 Found, and another host is not asked": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusFound)
		},
		"exceeded": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"EOF":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			b.answers(answer)
			_, err := quickly.CreateRollout(t.Context(), ep.ID, stepped(source.ID, target.ID), "")
			refused := refusal(t, err)
			require.Equal(t, http.StatusServiceUnavailable, refused.Status)
			require.Contains(t, refused.Message, "no answer from the billing check: ask "+strings.TrimPrefix(b.URL, "http://"))
			require.Contains(t, refused.Message, name)
			require.NotContains(t, refused.Message, "plan=basic", "what else stands in the URL is not shown")
		})
	}
	require.Zero(t, elsewhere, "a redirect to another host is not followed")
	b.answers(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/check" {
			http.Redirect(w, r, "/v2/check", http.StatusFound)
		}
	})
	_, err = quickly.CreateRollout(t.Context(), ep.ID, stepped(source.ID, target.ID), "")
	require.NoError(t, err, "one within the host is")
	require.NoError(t, stop(s))
	require.NotContains(t, log.String(), billingToken)
}

func TestEntitlementSettingsThatCannotBeAskedAreRefused(t *testing.T) {
	t.Setenv("BILLING_TOKEN", billingToken)
	for name, c := range map[string]struct{ text, says string }{
		"no url":         {"entitlement:\n  timeout: 1s\n", "engine.yaml:2: entitlement: it has no url"},
		"no scheme":      {"entitlement:\n  url: billing.example.com\n", "engine.yaml:2: entitlement.url: use http://HOST/PATH"},
		"no host":        {"entitlement:\n  url: https:///check\n", "engine.yaml:2: entitlement.url"},
		"not a URL":      {"entitlement:\n  url: \"https://a b/\"\n", "engine.yaml:2: entitlement.url: it is not a URL"},
		"a password":     {"entitlement:\n  url: https://me:secret@b.example.com\n", "engine.yaml:2: entitlement.url: a user or password does not belong here"},
		"a fragment":     {"entitlement:\n  url: https://b.example.com/#x\n", "engine.yaml:2: entitlement.url"},
		"a long timeout": {"entitlement:\n  url: https://b.example.com\n  timeout: 2m\n", "engine.yaml:3: entitlement.timeout: 2m0s is longer than 30s"},
		"no such token":  {"entitlement:\n  url: https://b.example.com\n  token_env: SLUICE_NOT_SET\n", `engine.yaml:3: entitlement.token_env: the environment variable "SLUICE_NOT_SET" is empty or not set`},
		"plain HTTP":     {"entitlement:\n  url: http://b.example.com\n  token_env: BILLING_TOKEN\n", "engine.yaml:2: entitlement.url: a token over plain HTTP"},
		"a misspelt key": {"entitlement:\n  uri: https://b.example.com\n", `engine.yaml:2: "uri" is not a setting here; did you mean "url"?`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "engine.yaml")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			_, err := serve.ReadFile(path)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), billingToken)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}
