package provider

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// fault is what a network or an engine does to one call.
type fault string

const (
	none       fault = ""
	dropBefore fault = "drop before" // the engine never sees it
	dropAfter  fault = "drop after"  // carried out, and the answer is lost
	delay      fault = "delay"       // answered after the client has given up
	duplicate  fault = "duplicate"   // carried out twice, the second answer arrives
	truncate   fault = "truncate"    // the answer ends in its middle
	reset      fault = "reset"       // carried out, and the connection is reset
	tooMany    fault = "429"         // with Retry-After
	broken     fault = "500"
	badGateway fault = "502"
	busy       fault = "503" // with a page of HTML
)

var faults = []fault{dropBefore, dropAfter, delay, duplicate, truncate, reset, tooMany, broken, badGateway, busy}

func impatient(c *engineclient.Config) {
	c.AttemptTimeout = patience
	c.Transport = &http.Transport{DisableKeepAlives: true} // a connection that a fault broke must not carry another call
}

// faultProxy stands between a provider and an engine. It does one thing to one call,
// named by what it is and the how-manieth of its kind: "GET rollout 2".
type faultProxy struct {
	*httptest.Server
	forward http.Handler

	mu   sync.Mutex
	seen map[string]int // calls by kind
	at   string
	do   fault
	hit  bool
}

func newFaultProxy(t *testing.T, engine string) *faultProxy {
	t.Helper()
	up, err := url.Parse(engine)
	require.NoError(t, err)
	quiet := log.New(io.Discard, "", 0) // broken connections are what is tested
	forward := httputil.NewSingleHostReverseProxy(up)
	forward.ErrorLog = quiet
	p := &faultProxy{forward: forward, seen: map[string]int{}}
	p.Server = httptest.NewUnstartedServer(p)
	p.Config.ErrorLog = quiet
	p.Start()
	t.Cleanup(p.Close)
	return p
}

// set arranges for a fault and forgets what was seen.
func (p *faultProxy) set(at string, do fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.do, p.hit, p.seen = at, do, false, map[string]int{}
}

func (p *faultProxy) calls() (map[string]int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.seen), p.hit
}

var ids = regexp.MustCompile(`/(proj|ep|dep|rol)_[a-z0-9]+`)

// kindOf names a call without its ids.
func kindOf(r *http.Request) string {
	path := strings.TrimPrefix(ids.ReplaceAllString(r.URL.Path, "/$1"), "/v2/projects/proj")
	if r.URL.Query().Get("follow") == "true" {
		path += "?follow"
	}
	return r.Method + " " + path
}

func (p *faultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := kindOf(r)
	p.mu.Lock()
	p.seen[kind]++
	do := none
	if p.at == kind+" "+strconv.Itoa(p.seen[kind]) {
		do, p.hit = p.do, true
	}
	p.mu.Unlock()
	p.carry(w, r, do)
}

func (p *faultProxy) carry(w http.ResponseWriter, r *http.Request, do fault) {
	switch {
	case do == none:
		p.forward.ServeHTTP(w, r)
	case do == dropBefore:
		panic(http.ErrAbortHandler)
	case do == tooMany || do == broken || do == badGateway || do == busy:
		if do == tooMany {
			w.Header().Set("Retry-After", "1")
		}
		status, _ := strconv.Atoi(string(do))
		w.WriteHeader(status)
		_, _ = w.Write([]byte("<html>no</html>"))
	case r.URL.Query().Get("follow") == "true":
		if do == delay {
			time.Sleep(patience + 100*time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		defer cancel()
		p.forward.ServeHTTP(w, r.WithContext(ctx))
		panic(http.ErrAbortHandler)
	default:
		p.spoil(w, r, do)
	}
}

// spoil has a call carried out and does something to its answer.
func (p *faultProxy) spoil(w http.ResponseWriter, r *http.Request, do fault) {
	body, _ := io.ReadAll(r.Body)
	answer := p.answer(r, body)
	keep := answer.Body.Len()
	switch do {
	case dropAfter:
		panic(http.ErrAbortHandler)
	case reset:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
		return
	case delay:
		time.Sleep(patience + 100*time.Millisecond) // the delay is the fault
	case duplicate:
		answer = p.answer(r, body)
		keep = answer.Body.Len()
	case truncate:
		keep /= 2
	case none, dropBefore, tooMany, broken, badGateway, busy: // not here
	}
	maps.Copy(w.Header(), answer.Header())
	w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()[:keep])
	if keep < answer.Body.Len() {
		panic(http.ErrAbortHandler)
	}
}

// answer is what the engine says, even to a client that went.
func (p *faultProxy) answer(r *http.Request, body []byte) *httptest.ResponseRecorder {
	again := r.Clone(context.WithoutCancel(r.Context()))
	again.Body = io.NopCloser(bytes.NewReader(body))
	w := httptest.NewRecorder()
	p.forward.ServeHTTP(w, again)
	return w
}

// allFaults plays each fault on each call. A sample, whose stride meets every fault, is
// what "go test" plays; "make test" plays all.
var allFaults = flag.Bool("faults.all", false, "play every fault on every call, and not a sample")

// Every call of a create, start and wait × every fault: one rollout, not tainted, its
// final state right; an error only where the engine had accepted nothing yet, and then
// the next apply does it all.
func TestEveryCallOfACreateSurvivesEveryFault(t *testing.T) {
	e := startReal(t, t.TempDir(), "127.0.0.1:0")
	t.Cleanup(func() { require.NoError(t, e.Stop(context.WithoutCancel(t.Context()))) })
	key, clean := e.key(t), e.pair(t)
	p := newFaultProxy(t, e.APIURL)
	c, wrong := newCore(t, p.URL, key, impatient)
	require.Empty(t, wrong)
	wrong, _ = c.apply(t, clean.spec(nil))
	require.Empty(t, wrong)
	e.requireOneThatEnded(t, c, clean)
	var calls []string
	seen, _ := p.calls()
	for _, kind := range slices.Sorted(maps.Keys(seen)) {
		for n := range seen[kind] {
			calls = append(calls, fmt.Sprintf("%s %d", kind, n+1))
		}
	}
	require.GreaterOrEqual(t, len(calls), 8, calls)
	t.Logf("a create, start and wait is %d calls: %s", len(calls), strings.Join(calls, ", "))
	var tally struct {
		sync.Mutex
		stories, hit, before, warned int
	}
	room := make(chan struct{}, together)
	var wg sync.WaitGroup
	played := 0
	for i, at := range calls {
		for j, do := range faults {
			if !*allFaults && (i*len(faults)+j)%everyStory != 0 {
				continue
			}
			played++
			wg.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				hit, before, warned := e.story(t, key, at, do)
				tally.Lock()
				defer tally.Unlock()
				tally.stories++
				tally.hit += hit
				tally.before += before
				tally.warned += warned
			})
		}
	}
	wg.Wait()
	t.Logf("measured: %d calls × %d faults, %d stories of them, the fault met in %d; %d ended in an error before anything was accepted, %d in a warning, all in one rollout that the next apply brought to its end",
		len(calls), len(faults), tally.stories, tally.hit, tally.before, tally.warned)
	require.Equal(t, played, tally.stories)
	require.Greater(t, tally.hit, tally.stories*3/4, "a late poll may not come when an earlier one was slow")
}

// story applies once with a fault and, unless that was the end, once more without.
func (e *realEngine) story(t *testing.T, key, at string, do fault) (hit, before, warned int) {
	name, house := at+", "+string(do), e.pair(t)
	p := newFaultProxy(t, e.APIURL)
	p.set(at, do)
	c, wrong := newCore(t, p.URL, key, impatient)
	warnings := ""
	if wrong == "" {
		wrong, warnings = c.apply(t, house.spec(nil))
	}
	if _, met := p.calls(); met {
		hit = 1
	}
	if wrong != "" {
		before = 1
		require.Nil(t, c.attributes(t), "%s: an error once something was accepted taints: %s", name, wrong)
		if hit == 1 { // and not a machine too busy to answer before it came to that
			require.NotContains(t, at, "GET /endpoints/ep/rollouts/rol", "%s: no error from a wait: %s", name, wrong)
		}
	}
	if c.attributes(t)["state"] != "COMPLETED" {
		if wrong == "" {
			warned = 1
			require.NotEmpty(t, warnings, name)
		}
		p.set("", none)
		again, wrong := newCore(t, p.URL, key, impatient)
		require.Empty(t, wrong, name)
		again.state, c = c.state, again
		wrong, _ = c.apply(t, house.spec(nil))
		require.Empty(t, wrong, name)
	}
	e.requireOneThatEnded(t, c, house)
	return hit, before, warned
}

func (e *realEngine) key(t *testing.T) string {
	t.Helper()
	k, err := e.client.CreateKey(t.Context(), api.CreateKey{Name: "terraform", Scopes: []string{"operate"}})
	require.NoError(t, err)
	return k.Secret
}
