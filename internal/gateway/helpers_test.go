package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/internal/meter"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// upstream starts a replica's HTTP server and returns its address.
func upstream(t testing.TB, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// echo answers with what it was asked for.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"path":%q,"got":%s}`, r.URL.Path, b) //nolint:gosec // a test's echo
}

// refused returns an address that nobody listens on.
func refused(t testing.TB) string {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}

// ready makes the ready replicas of a deployment, one for each address.
func ready(deployment string, addresses ...string) []rollout.Replica {
	var rs []rollout.Replica
	for i, a := range addresses {
		rs = append(rs, rollout.Replica{
			ID: fmt.Sprintf("%s-%d", deployment, i), Deployment: deployment, Address: a, State: rollout.ReplicaReady,
		})
	}
	return rs
}

// serves makes one deployment of endpoint acme/chat with weight 1.
func serves(deployment string, addresses ...string) rollout.Member {
	return rollout.Member{
		Deployment: deployment, Name: "acme/chat/" + deployment, Model: "model-" + deployment,
		Weight: 1, Replicas: ready(deployment, addresses...),
	}
}

// chat makes a route of endpoint acme/chat.
func chat(generation uint64, members ...rollout.Member) rollout.Route {
	return rollout.Route{EndpointID: "ep_1", Name: "acme/chat", Generation: generation, Salt: "ep_1", Members: members}
}

// moving makes a route in which a rollout moves traffic from the first member to
// the second.
func moving(generation uint64, percent int, members ...rollout.Member) rollout.Route {
	r := chat(generation, members...)
	r.Pair = &rollout.Pair{
		RolloutID: "ro_1", Source: members[0].Deployment, Target: members[1].Deployment, Percent: percent, Share: 1,
	}
	return r
}

// gate is a gateway behind its own server.
type gate struct {
	*Gateway
	url string
}

// start serves a gateway on a free port for the length of the test.
func start(t testing.TB, c Config, routes ...rollout.Route) gate {
	if c.Meter == nil {
		c.Meter = meter.New(meter.Config{Slot: 100 * time.Millisecond})
	}
	g := New(c)
	for _, r := range routes {
		require.NoError(t, g.Apply(r))
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		assert.NoError(t, g.Shutdown(ctx))
		assert.NoError(t, <-served)
	})
	return gate{g, "http://" + l.Addr().String()}
}

// answered is a response read to its end.
type answered struct {
	status int
	header http.Header
	body   string
	err    error
}

// post sends a body to a path.
func (g gate) post(ctx context.Context, path, body string, headers ...string) answered {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+path, strings.NewReader(body))
	if err != nil {
		return answered{err: err}
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return do(r)
}

func do(r *http.Request) answered {
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return answered{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	b, err := io.ReadAll(response.Body)
	return answered{response.StatusCode, response.Header, string(b), err}
}

// ask sends a minimal chat request for a model.
func (g gate) ask(t testing.TB, model string) answered {
	a := g.post(t.Context(), "/v1/chat/completions", fmt.Sprintf(`{"model":%q}`, model))
	require.NoError(t, a.err)
	return a
}

// code returns the code of an OpenAI error body.
func (a answered) code(t testing.TB) string {
	var e struct {
		Error struct{ Message, Type, Code string }
	}
	require.NoError(t, json.NewDecoder(bytes.NewBufferString(a.body)).Decode(&e), a.body)
	require.NotEmpty(t, e.Error.Message)
	require.NotEmpty(t, e.Error.Type)
	return e.Error.Code
}

// eventually waits for what happens in another goroutine.
func eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	require.Eventually(t, ok, within, time.Millisecond, what)
}

// total returns what the meter counted of a deployment.
func (g gate) total(deployment string) meter.Totals {
	return g.Meter().Recent(deployment, time.Minute).Total
}
