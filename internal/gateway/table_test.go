package gateway

import (
	"math"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func TestNW5ARouteThatCannotBeServedIsRefusedAndTheOldOneServes(t *testing.T) {
	a := upstream(t, echo)
	good := moving(5, 0, serves("a", a), serves("b"))
	g := start(t, Config{}, good)
	for name, bad := range map[string]rollout.Route{
		"percent above 100":      moving(6, 101, serves("a", a), serves("b", a)),
		"pair of strangers":      {EndpointID: "ep_1", Name: "acme/chat", Generation: 6, Pair: &rollout.Pair{Source: "x", Target: "y"}},
		"weight not a number":    chat(6, rollout.Member{Deployment: "a", Weight: math.NaN()}),
		"a deployment twice":     chat(6, serves("a", a), serves("a", a)),
		"a member with its name": chat(6, rollout.Member{Deployment: "a", Name: "acme/chat"}),
		"no endpoint":            {Generation: 6},
	} {
		var invalid *InvalidRouteError
		require.ErrorAs(t, g.Apply(bad), &invalid, name)
	}
	serving, ok := g.Serving("ep_1")
	require.True(t, ok)
	assert.Equal(t, good, serving)
	answer := g.ask(t, "acme/chat")
	assert.Equal(t, http.StatusOK, answer.status)
	assert.Equal(t, "5", answer.header.Get(HeaderGeneration))
}

func TestNW5AnOlderGenerationIsRefusedAndTheSameOneIsFine(t *testing.T) {
	g := start(t, Config{}, chat(5, serves("a")))
	var stale *StaleRouteError
	require.ErrorAs(t, g.Apply(chat(4, serves("a"))), &stale)
	assert.Equal(t, StaleRouteError{"ep_1", 4, 5}, *stale)
	require.NoError(t, g.Apply(chat(5, serves("a"))))
	require.ErrorAs(t, g.Apply(chat(5, serves("b"))), &stale, "one generation, one content")
	require.NoError(t, g.Apply(chat(6, serves("b"))))
	g.Remove("ep_1")
	_, ok := g.Serving("ep_1")
	assert.False(t, ok)
	assert.Equal(t, "model_not_found", g.ask(t, "acme/chat").code(t))
	require.NoError(t, g.Apply(chat(1, serves("a"))), "an endpoint made anew starts anew")
}

func TestANameBelongsToOneEndpoint(t *testing.T) {
	g := New(Config{})
	require.NoError(t, g.Apply(chat(1, serves("a"))))
	other := chat(1, serves("z"))
	other.EndpointID = "ep_2"
	var invalid *InvalidRouteError
	require.ErrorAs(t, g.Apply(other), &invalid)
	other.Name, other.Members[0].Name = "acme/other", "acme/chat/a"
	require.ErrorAs(t, g.Apply(other), &invalid)
	other.Members[0].Name = "acme/other/z"
	require.NoError(t, g.Apply(other))
}

func TestWhatIsServedDoesNotChangeUnderItsCaller(t *testing.T) {
	a := upstream(t, echo)
	r := chat(1, serves("a", a))
	g := start(t, Config{}, r)
	r.Members[0].Replicas[0].State = rollout.ReplicaFailed
	got, _ := g.Serving("ep_1")
	got.Members[0].Replicas[0].Address = "127.0.0.1:1"
	got, _ = g.Serving("ep_1")
	assert.Equal(t, a, got.Members[0].Replicas[0].Address)
	assert.Equal(t, rollout.ReplicaReady, got.Members[0].Replicas[0].State)
}

func TestTheMeterLearnsTheReadyReplicas(t *testing.T) {
	g := start(t, Config{}, chat(1, serves("a", "127.0.0.1:1", "127.0.0.1:2"), serves("b", "127.0.0.1:3")))
	assert.Equal(t, 2, g.Meter().Recent("a", 0).Ready)
	require.NoError(t, g.Apply(chat(2, serves("b"))))
	assert.Equal(t, 0, g.Meter().Recent("a", 0).Ready)
	assert.Equal(t, 0, g.Meter().Recent("b", 0).Ready)
}

func TestConnectionsAreSharedAcrossGenerationsAndClosedWithTheLastUse(t *testing.T) {
	a := upstream(t, echo)
	g := start(t, Config{}, chat(1, serves("a", a)))
	g.ask(t, "acme/chat")
	p := g.pools[a]
	eventually(t, eventSoon, "the connection is kept", func() bool { return idle(p) == 1 })
	require.NoError(t, g.Apply(chat(2, serves("a", a), serves("b"))))
	assert.Same(t, p, g.pools[a])
	assert.Equal(t, 1, idle(p))
	require.NoError(t, g.Apply(chat(3, serves("b"))))
	assert.Zero(t, idle(p))
	assert.Empty(t, g.pools)
	assert.Empty(t, g.replicas)
}

func idle(p *pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

func TestWhatIsServedIsNobodysToChange(t *testing.T) {
	g := New(Config{})
	offered := chat(1, serves("a", addresses(1)...), serves("b", addresses(1)...))
	offered.Pair = &rollout.Pair{RolloutID: "rol_1", Source: "a", Target: "b", Percent: 10, Share: 1}
	offered.Members[0].Replicas[0].GPUs = []int{3}
	require.NoError(t, g.Apply(offered))
	was, _ := g.Serving("ep_1")
	spoil := func(r rollout.Route) {
		r.Pair.Percent, r.Members[0].Weight, r.Members[0].Replicas[0].ID, r.Members[0].Replicas[0].GPUs[0] = 99, 7, "x", 9
	}
	spoil(offered)
	told, _ := g.Serving("ep_1")
	require.Equal(t, was, told, "not by the one who applied it")
	spoil(told)
	told, _ = g.Serving("ep_1")
	require.Equal(t, was, told, "nor by one who asked")
}

func TestANameFollowsItsRoute(t *testing.T) {
	g := New(Config{})
	require.NoError(t, g.Apply(chat(1, serves("a", addresses(1)...))))
	e, pinned := g.table.named("acme/chat")
	require.Equal(t, []any{"ep_1", ""}, []any{e.route.EndpointID, pinned})
	renamed := chat(2, serves("a", addresses(1)...))
	renamed.Name = "acme/talk"
	require.NoError(t, g.Apply(renamed))
	e, _ = g.table.named("acme/chat")
	require.Nil(t, e)
	other := chat(1, serves("b", addresses(1)...))
	other.EndpointID = "ep_2"
	require.NoError(t, g.Apply(other), "the name is free")
	g.Remove("ep_2")
	e, _ = g.table.named("acme/chat")
	require.Nil(t, e)
	e, _ = g.table.named("acme/talk")
	require.Equal(t, "ep_1", e.route.EndpointID)
	require.EqualValues(t, 1, g.table.endpoints.Load())
	require.Empty(t, g.leaving)
}
