package provider

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// during runs an apply and, once its rollout is under way, something beside it.
func (e *realEngine) during(t *testing.T, c *core, house pair, asked map[string]any, what func(id string)) (wrong, warned string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for t.Context().Err() == nil {
			if r, found, err := e.client.ActiveRollout(t.Context(), house.endpoint); err == nil && found && r.State == engineclient.StateStabilizing {
				what(r.ID)
				return
			}
		}
	}()
	wrong, warned = c.apply(t, asked)
	<-done
	return wrong, warned
}

// slow is a pair's canary that waits long enough to be disturbed.
func (p pair) slow() map[string]any {
	config := p.spec(nil)
	config["canary"].(map[string]any)["step_interval"] = "2s"
	return config
}

func hurried(c *engineclient.Config) {
	impatient(c)
	c.Retries = engineclient.Retries{Attempts: 2, First: 20 * time.Millisecond, Most: 50 * time.Millisecond}
}

// A name that does not resolve for a while, and connections that are refused, are
// waited out in the middle of an apply.
func TestAWaitOutlivesANameThatDoesNotResolve(t *testing.T) {
	t.Parallel()
	e := startReal(t, t.TempDir(), "127.0.0.1:0")
	t.Cleanup(func() { require.NoError(t, e.Stop(context.WithoutCancel(t.Context()))) })
	var gone atomic.Bool
	var failed atomic.Int32
	c, wrong := newCore(t, "http://engine.test", e.key(t), func(how *engineclient.Config) {
		hurried(how)
		how.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			if gone.Load() {
				failed.Add(1)
				return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "engine.test", IsNotFound: true}}
			}
			return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(e.APIURL, "http://"))
		}}
	})
	require.Empty(t, wrong)
	house := e.pair(t)
	wrong, warned := e.during(t, c, house, house.slow(), func(string) {
		gone.Store(true)
		time.AfterFunc(3*time.Second, func() { gone.Store(false) })
	})
	require.Empty(t, wrong)
	require.NotContains(t, warned, "not watched")
	require.Positive(t, failed.Load())
	e.requireOneThatEnded(t, c, house)
}

// The engine ends and comes back on the same port and folder, as another version, in
// the middle of an apply: the wait goes on with it.
func TestAWaitOutlivesAnUpgradeOfTheEngine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := startReal(t, dir, "127.0.0.1:0")
	address := strings.TrimPrefix(e.APIURL, "http://")
	c, wrong := newCore(t, e.APIURL, e.key(t), hurried)
	require.Empty(t, wrong)
	house := e.pair(t)
	started := make(chan *realEngine, 1)
	wrong, _ = e.during(t, c, house, house.slow(), func(string) {
		require.NoError(t, e.Stop(context.WithoutCancel(t.Context())))
		started <- startReal(t, dir, address)
	})
	again := <-started
	t.Cleanup(func() { require.NoError(t, again.Stop(context.WithoutCancel(t.Context()))) })
	require.Empty(t, wrong)
	again.requireOneThatEnded(t, c, house)
}

// A key that expires in the middle of an apply ends the wait with a warning and taints
// nothing; the next apply, with another key, goes on. A key from a file is read again,
// and the wait does not end at all.
func TestAnExpiredKeyInTheMiddleOfAnApply(t *testing.T) {
	t.Parallel()
	e := startReal(t, t.TempDir(), "127.0.0.1:0")
	t.Cleanup(func() { require.NoError(t, e.Stop(context.WithoutCancel(t.Context()))) })
	up, err := url.Parse(e.APIURL)
	require.NoError(t, err)
	var valid atomic.Value
	secret := e.key(t)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+valid.Load().(string) {
			told(w, http.StatusUnauthorized, map[string]string{"message": "the token has expired"})
			return
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		httputil.NewSingleHostReverseProxy(up).ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)

	valid.Store("monday")
	c, wrong := newCore(t, front.URL, "monday", hurried)
	require.Empty(t, wrong)
	house := e.pair(t)
	wrong, warned := e.during(t, c, house, house.slow(), func(string) { valid.Store("tuesday") })
	require.Empty(t, wrong)
	require.Contains(t, warned, "is not watched any longer")
	require.Contains(t, warned, "expired")
	state := c.attributes(t)
	again, wrong := newCore(t, front.URL, "tuesday", hurried)
	require.Empty(t, wrong)
	again.state = c.state
	wrong, _ = again.apply(t, house.slow())
	require.Empty(t, wrong)
	require.Equal(t, state["id"], again.attributes(t)["id"])
	e.requireOneThatEnded(t, again, house)

	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("tuesday\n"), 0o600))
	fromFile, _ := newCore(t, front.URL, "tuesday", hurried)
	require.Empty(t, errorsOf(fromFile.configure(t, map[string]any{"engine_url": front.URL, "api_key_file": file})))
	other := e.pair(t)
	wrong, warned = e.during(t, fromFile, other, other.slow(), func(string) {
		valid.Store("wednesday") // and the file has it a moment later
		time.AfterFunc(time.Second, func() { _ = os.WriteFile(file, []byte("wednesday\n"), 0o600) })
	})
	require.Empty(t, wrong)
	require.NotContains(t, warned, "not watched")
	e.requireOneThatEnded(t, fromFile, other)

	missing, _ := newCore(t, front.URL, "x", hurried)
	require.Contains(t, errorsOf(missing.configure(t, map[string]any{"engine_url": front.URL, "api_key_file": file + ".none"})), "cannot be read")
}

// An apply that was killed loses its state; the rollout goes on and completes meanwhile.
// The next apply takes it in, moves nothing and makes no second one.
func TestACompletedRolloutWhoseStateWasLostIsTakenIn(t *testing.T) {
	t.Parallel()
	e := startReal(t, t.TempDir(), "127.0.0.1:0")
	t.Cleanup(func() { require.NoError(t, e.Stop(context.WithoutCancel(t.Context()))) })
	c, wrong := newCore(t, e.APIURL, e.key(t), nil)
	require.Empty(t, wrong)
	house := e.pair(t)
	wrong, _ = c.apply(t, house.spec(nil))
	require.Empty(t, wrong)
	c.state = asTerraform(t, c.typ, nil)
	wrong, _ = c.apply(t, house.spec(nil))
	require.Empty(t, wrong)
	e.requireOneThatEnded(t, c, house)

	c.state = asTerraform(t, c.typ, nil)
	wrong, _ = c.apply(t, house.spec(map[string]any{"final_source_replicas": tftypes.NewValue(tftypes.Number, 1)}))
	require.Contains(t, wrong, "the target serves alone", "another spec is no claim to it")
}
