package reconciler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// traced makes the world's next process tell its spans.
func (w *stage) traced() *tracetest.InMemoryExporter {
	w.t.Helper()
	told := tracetest.NewInMemoryExporter()
	w.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(told))
	w.t.Cleanup(func() { require.NoError(w.t, w.traces.Shutdown(context.Background())) })
	return told
}

// treeOf is the spans as lines, each below its parent, in the order of their beginning.
func treeOf(spans tracetest.SpanStubs, keep ...string) []string {
	var out []string
	var below func(parent trace.SpanID, depth int)
	below = func(parent trace.SpanID, depth int) {
		for _, s := range spans {
			if s.Parent.SpanID() != parent {
				continue
			}
			line := strings.Repeat("  ", depth) + s.Name
			for _, a := range s.Attributes {
				if slices.Contains(keep, string(a.Key)) {
					line += fmt.Sprintf(" %s=%s", strings.TrimPrefix(string(a.Key), "sluice."), a.Value.String())
				}
			}
			out = append(out, line)
			below(s.SpanContext.SpanID(), depth+1)
		}
	}
	below(trace.SpanID{}, 0)
	return out
}

// inOrder are the stubs in the order of their beginning: each ends after what is in it.
func inOrder(e *tracetest.InMemoryExporter) tracetest.SpanStubs {
	spans := e.GetSpans()
	e.Reset()
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	return spans
}

// A pass is one trace: what it observes, reads, plans, judges, changes and reports, each
// below what asked for it. At rest it is a short one.
func TestAPassIsOneTraceOfWhatItDid(t *testing.T) {
	w, git, f := reviewed(t)
	w.repository("models").Policies = []PolicyConfig{{Path: priced(t, "5000")}}
	w.config.Notify = []NotifyConfig{{Name: "log", Kind: Stdout}}
	told := w.traced()
	w.begin()
	require.NoError(t, w.pass())
	told.Reset()
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Equal(t, []string{
		"pass", "  observe", "  read",
		"  pulls", "    forge read forge.call=open", "    forge read forge.call=closed",
		"  stack stack=prod", "  report",
	}, treeOf(inOrder(told), "sluice.forge.call", "sluice.stack"), "at rest")

	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	tree := strings.Join(treeOf(inOrder(told), "sluice.forge.call"), "\n")
	require.Contains(t, tree, "  report\n    plan\n      judge\n    forge read forge.call=comments\n    forge write forge.call=comment")
	require.Contains(t, tree, "    forge write forge.call=set status")

	merged := c.merge()
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	spans := inOrder(told)
	tree = strings.Join(treeOf(spans, "sluice.verb", "sluice.address", "sluice.destination", "sluice.event"), "\n")
	require.Contains(t, tree, "  stack\n    plan\n      judge\n    apply verb=create_rollout address=sluice_rollout.r\n    plan")
	require.Contains(t, tree, "\n    apply verb=start_rollout address=sluice_rollout.r\n")
	require.Contains(t, tree, "\nnotify destination=log event=apply.create")
	require.True(t, slices.ContainsFunc(spans, func(s tracetest.SpanStub) bool {
		return s.Name == "apply" && slices.Contains(s.Attributes, ofCommit.String(merged)) && s.SpanContext.TraceID() == spans[0].SpanContext.TraceID()
	}), "of the merged commit, in the trace of the pass")

	w.advance(10 * time.Second)
	require.NoError(t, w.pass())
	require.Contains(t, strings.Join(treeOf(inOrder(told), "sluice.rollout"), "\n"), "  stack\n    look rollout="+w.all("chat")[0].ID)
}

// No span has a text of others or a secret: not a title, not a comment, not a login, and
// not the text of an error, of which only the kind is told.
func TestNoSpanTellsATextOfOthers(t *testing.T) {
	w, git, f := reviewed(t)
	told := w.traced()
	w.begin()
	c := w.propose(git, f, "branch-of-mallory", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	f.Say(c.number, "olga", "/sluice plan words-of-olga")
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	w.fault = func(*http.Request) error { return errors.New("words-of-the-network") }
	c.merge()
	w.advance(time.Minute)
	require.Error(t, w.pass())
	spans := inOrder(told)
	failed := slices.DeleteFunc(slices.Clone(spans), func(s tracetest.SpanStub) bool { return s.Status.Code != codes.Error })
	require.NotEmpty(t, failed)
	require.Equal(t, "engine unreachable", failed[0].Status.Description)
	allowed := []string{"sluice.repository", "sluice.stack", "sluice.commit", "sluice.rollout", "sluice.verb", "sluice.address", "sluice.destination", "sluice.event", "sluice.forge.call", "sluice.forge.access", "sluice.pull_request", "error.type"}
	for _, s := range spans {
		require.Empty(t, s.Events, s.Name)
		for _, a := range s.Attributes {
			require.Contains(t, allowed, string(a.Key), s.Name)
			require.LessOrEqual(t, len(a.Value.String()), 4*longestAddress)
			for _, secret := range []string{w.key, "mallory", "olga", "ann", "words-of", "git.test", "engine.test"} {
				require.NotContains(t, a.Value.String(), secret, a.Key)
			}
		}
	}
}

// Only the standard variables turn traces on, and what cannot be done is said at the start.
func TestTracesAreTurnedOnByTheStandardVariables(t *testing.T) {
	for name, c := range map[string]struct {
		env map[string]string
		on  bool
		err string
	}{
		"nothing":         {},
		"an endpoint":     {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, on: true},
		"of traces alone": {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, on: true},
		"an exporter":     {env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, on: true},
		"none":            {env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}},
		"disabled":        {env: map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}},
		"another":         {env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, err: "give otlp or none"},
		"gRPC":            {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, err: "http/protobuf"},
	} {
		on, err := wantsTraces(func(k string) string { return c.env[k] })
		require.Equal(t, c.on, on, name)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, name)
		} else {
			require.NoError(t, err, name)
		}
	}
	none, err := openTraces(t.Context(), OpenOptions{Getenv: func(string) string { return "" }})
	require.NoError(t, err)
	require.Nil(t, none)
}

// Spans reach a collector at the latest when the reconciler ends, and the engine is told
// which span asked.
func TestSpansReachACollectorAndTheEngine(t *testing.T) {
	sent, asked := make(chan string, 10), make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent <- r.URL.Path + " " + r.Header.Get("X-Of") }))
	defer collector.Close()
	engine := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("traceparent")
		_, _ = rw.Write([]byte(`{"project_id": "proj_a"}`))
	}))
	defer engine.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-of=tests")
	t.Setenv("SLUICE_API_KEY", "key")
	r, err := Open(t.Context(), Config{Engine: EngineConfig{URL: engine.URL}, State: StateConfig{Path: filepath.Join(t.TempDir(), "journal.db")}}, OpenOptions{})
	require.NoError(t, err)
	_, err = r.engine.WhoAmI(t.Context()) // kept by the client from here on
	require.NoError(t, err)
	require.Empty(t, <-asked, "no span, no header")
	id := ""
	require.NoError(t, r.within(t.Context(), "pass", func(ctx context.Context) error {
		id = trace.SpanContextFromContext(ctx).TraceID().String()
		_, err := r.engine.GetEndpoint(ctx, "ep_1")
		return err
	}))
	require.Contains(t, <-asked, id)
	require.NoError(t, r.Close())
	require.Equal(t, "/v1/traces tests", <-sent)
}

// A collector that takes nothing delays the end by no more than the bound.
func TestADeadCollectorDoesNotHoldUpTheEnd(t *testing.T) {
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(stuck{}))
	_, span := traces.Tracer("test").Start(t.Context(), "pass")
	span.End()
	began := time.Now()
	require.ErrorIs(t, endTraces(t.Context(), traces, 50*time.Millisecond), context.DeadlineExceeded)
	require.Less(t, time.Since(began), 5*time.Second)
}

// stuck is an exporter that never ends by itself.
type stuck struct{}

func (stuck) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	<-ctx.Done()
	return ctx.Err()
}

func (stuck) Shutdown(context.Context) error { return nil }
