package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/server"
)

// feed is an open event stream.
type feed struct {
	t      *testing.T
	answer *http.Response
	lines  *bufio.Scanner
	cancel context.CancelFunc
}

// follow opens a stream as key and returns once its head is there.
func (d *door) follow(key, base, endpoint, last string) *feed {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v2/projects/proj_a/endpoints/"+endpoint+"/events?follow=true", nil)
	require.NoError(d.t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(req) //nolint:bodyclose // the cleanup below
	require.NoError(d.t, err)
	d.t.Cleanup(func() { cancel(); _ = answer.Body.Close() })
	return &feed{t: d.t, answer: answer, lines: bufio.NewScanner(answer.Body), cancel: cancel}
}

// next is the next event's id and type.
func (f *feed) next() (id, kind string) {
	f.t.Helper()
	for f.lines.Scan() {
		name, value, _ := strings.Cut(f.lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "data":
			var e struct{ Type string }
			require.NoError(f.t, json.Unmarshal([]byte(value), &e))
			return id, e.Type
		}
	}
	require.Fail(f.t, "the stream ended", f.lines.Err())
	return "", ""
}

// rest reads until the stream ends.
func (f *feed) rest() string {
	b, _ := io.ReadAll(f.answer.Body)
	return string(b)
}

func TestAFeedIsFollowedAsItGrowsAlsoThroughAProxy(t *testing.T) {
	d := newDoor(t)
	ep, source, target := d.endpoint("chat")
	up, err := url.Parse(d.url)
	require.NoError(t, err)
	proxy := httptest.NewServer(httputil.NewSingleHostReverseProxy(up))
	t.Cleanup(proxy.Close)
	direct, through := d.follow(d.reader, d.url, ep, ""), d.follow(d.reader, proxy.URL, ep, "")
	for _, f := range []*feed{direct, through} { // the head is there before anything happens
		require.Equal(t, http.StatusOK, f.answer.StatusCode)
		require.Equal(t, "text/event-stream", f.answer.Header.Get("Content-Type"))
		require.Contains(t, f.answer.Header.Get("Cache-Control"), "no-transform")
		require.Equal(t, "no", f.answer.Header.Get("X-Accel-Buffering"))
	}
	r := d.call("POST", base+"/"+ep+"/rollouts", `{"sourceDeploymentId":"`+source+`","targetDeploymentId":"`+target+`","blueGreen":{}}`).ok().text("id")
	_, kind := direct.next()
	require.Equal(t, "rollout.created", kind, "nothing from before the stream")
	_, kind = through.next()
	require.Equal(t, "rollout.created", kind)
	d.call("DELETE", base+"/"+ep+"/rollouts/"+r, "").ok()
	_, kind = direct.next()
	require.Equal(t, "rollout.deleted", kind)
}

func TestAFeedResumesAfterTheLastEvent(t *testing.T) {
	d := newDoor(t)
	ep, source, target := d.endpoint("chat")
	body := `{"sourceDeploymentId":"` + source + `","targetDeploymentId":"` + target + `","blueGreen":{}}`
	first := d.follow(d.reader, d.url, ep, "")
	r := d.call("POST", base+"/"+ep+"/rollouts", body).ok().text("id")
	last, _ := first.next()
	first.cancel()
	d.call("DELETE", base+"/"+ep+"/rollouts/"+r, "").ok() // while nobody listens
	again := d.follow(d.reader, d.url, ep, last)
	id, kind := again.next()
	require.Equal(t, "rollout.deleted", kind)
	require.Greater(t, id, last)
	for _, wrong := range []string{"evt_", "7", "evt_x", "evt_-1", "evt_+5"} {
		d.as(d.reader, "GET", base+"/"+ep+"/events?follow=true", "", "Last-Event-ID", wrong).refused(400, "INVALID_ARGUMENT", wrong)
	}
	d.call("GET", base+"/"+ep+"/events?follow=maybe", "").refused(400, "INVALID_ARGUMENT", "neither true nor false")
	d.call("GET", base+"/"+ep+"/events?follow=true&until=2026-01-01T00:00:00Z", "").refused(400, "INVALID_ARGUMENT", "no end")
	d.call("GET", base+"/ep_none/events?follow=true", "").refused(404, "NOT_FOUND")
	d.as("", "GET", base+"/"+ep+"/events?follow=true", "").refused(401, "UNAUTHENTICATED")
}

// More rows than one read takes come in order, each once.
func TestAFollowerThatWasAwayForLongGetsEverythingInOrder(t *testing.T) {
	d := newDoor(t)
	ep, _, _ := d.endpoint("chat")
	const rows = 350
	events := make([]rollout.Event, rows)
	for i := range events {
		events[i] = rollout.Event{At: time.Now(), ProjectID: "proj_a", EndpointID: ep, Type: "rollout.test", Level: rollout.LevelInfo}
	}
	before := d.call("GET", base+"/"+ep+"/events?limit=1", "").ok().json()["data"].([]any)[0].(map[string]any)["id"].(string)
	require.NoError(t, d.engine.Store.Commit(t.Context(), rollout.Change{Events: events}))
	f := d.follow(d.reader, d.url, ep, before)
	for range rows {
		id, _ := f.next()
		require.Greater(t, id, before)
		before = id
	}
}

func TestAStreamShowsThatItLivesAndEndsWithItsKeyItsEndpointAndItsServer(t *testing.T) {
	d := newDoorWith(t, server.StreamLimits{Heartbeat: 20 * time.Millisecond})
	ep, _, _ := d.endpoint("chat")
	gone := d.call("POST", base, `{"name":"gone"}`).ok().text("id")
	made := d.call("POST", "/sluice/keys", `{"name":"ci","scopes":["read"]}`).ok()
	byKey, byEndpoint, byServer := d.follow(made.text("secret"), d.url, ep, ""), d.follow(d.reader, d.url, gone, ""), d.follow(d.reader, d.url, ep, "")
	d.call("DELETE", "/sluice/keys/"+made.text("id"), "").ok()
	byKey.rest()
	d.call("DELETE", base+"/"+gone, "").ok()
	byEndpoint.rest()
	beats := 0
	for beats < 3 && byServer.lines.Scan() {
		if byServer.lines.Text() == ": alive" {
			beats++
		}
	}
	require.Equal(t, 3, beats)
	d.api.EndStreams()
	byServer.rest()
}

func TestAKeyHasALimitOfStreams(t *testing.T) {
	d := newDoorWith(t, server.StreamLimits{PerKey: 2, Heartbeat: 20 * time.Millisecond})
	ep, _, _ := d.endpoint("chat")
	first := d.follow(d.reader, d.url, ep, "")
	d.follow(d.reader, d.url, ep, "")
	d.as(d.reader, "GET", base+"/"+ep+"/events?follow=true", "").refused(429, "RATE_LIMITED", "2 feeds")
	d.follow(d.writer, d.url, ep, "") // another key has its own
	first.cancel()
	require.Eventually(t, func() bool { // the place of one that went is free again
		f := d.follow(d.reader, d.url, ep, "")
		if f.answer.StatusCode != http.StatusOK {
			f.cancel()
			return false
		}
		return true
	}, 10*time.Second, 20*time.Millisecond)
}

// A client that does not read is dropped; it costs no memory that grows, and keeps
// nobody else waiting.
func TestAClientThatDoesNotReadIsDropped(t *testing.T) {
	d := newDoorWith(t, server.StreamLimits{Patience: 100 * time.Millisecond, PerKey: 1, Heartbeat: time.Hour})
	ep, _, _ := d.endpoint("chat")
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://")) //nolint:noctx // a bare connection is what is wanted
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "GET "+base+"/"+ep+"/events?follow=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+d.reader+"\r\n\r\n")
	require.NoError(t, err)
	head := make([]byte, 12)
	_, err = io.ReadFull(conn, head)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 200", string(head))
	long := strings.Repeat("x", 1<<20)
	require.Eventually(t, func() bool {
		require.NoError(t, d.engine.Store.Commit(t.Context(), rollout.Change{Events: []rollout.Event{{At: time.Now(), ProjectID: "proj_a", EndpointID: ep, Type: "rollout.test", Level: rollout.LevelInfo, Message: long}}}))
		f := d.follow(d.reader, d.url, ep, "")
		defer f.cancel()
		return f.answer.StatusCode == http.StatusOK
	}, 20*time.Second, 10*time.Millisecond)
}
