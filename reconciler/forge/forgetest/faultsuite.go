package forgetest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// IdleConnections are the goroutines of kept connections, which are no leak.
func IdleConnections() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	}
}

// Faults is what a forge over a world must tell when calls fail.
func Faults(t *testing.T, over func(t *testing.T, w *World) forge.Forge) {
	for name, scenario := range map[string]func(t *testing.T, w *World, f forge.Forge){
		"each refusal is one, with a hint":                   refusals,
		"a limit names its instant":                          limits,
		"a broken forge is worth another try":                broken,
		"a role that cannot be read is no role (H3)":         rolesFailClosed,
		"a forge that never answers ends with the context":   hanging,
		"a lost answer makes no second sticky comment":       lostAnswer,
		"a stale list makes no second sticky comment":        staleList,
		"a status whose answer was lost is set again or not": lostStatus,
	} {
		t.Run(name, func(t *testing.T) {
			w := New(Options{})
			People(w)
			scenario(t, w, over(t, w))
		})
	}
}

func refusals(t *testing.T, w *World, f forge.Forge) {
	number := w.OpenPullRequest(Opening{})
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity} {
		// A 401 is tried once more with a fresh token.
		w.Next(CallComment, Answer(status), Answer(status))
		_, err := f.Comment(ctx(t), number, "hello")
		var refused *forge.Refused
		require.ErrorAs(t, err, &refused, "%d", status)
		assert.Equal(t, status, refused.Status)
		assert.NotEmpty(t, refused.Hint)
		assert.Contains(t, err.Error(), "comment on")
		w.Heal()
	}
	assert.Zero(t, w.Writes(Any))
}

func limits(t *testing.T, w *World, f forge.Forge) {
	for _, status := range []int{http.StatusForbidden, http.StatusTooManyRequests} {
		w.Next(CallOpen, Limit(status, 42*time.Second))
		_, err := f.Open(ctx(t), "main")
		var limited *forge.Limited
		require.ErrorAs(t, err, &limited, "%d", status)
		assert.WithinDuration(t, time.Now().Add(42*time.Second), limited.Until, 5*time.Second)
	}
	_, err := f.Open(ctx(t), "main")
	require.NoError(t, err)
}

func broken(t *testing.T, w *World, f forge.Forge) {
	for _, status := range []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable} {
		w.Next(CallStatuses, Answer(status))
		_, err := f.Statuses(ctx(t), madeUp("commit"))
		require.Error(t, err)
		var refused *forge.Refused
		var limited *forge.Limited
		assert.NotErrorAs(t, err, &refused)
		assert.NotErrorAs(t, err, &limited)
	}
	assert.Equal(t, 3, w.Calls(CallStatuses), "to try again is the caller's")
}

func rolesFailClosed(t *testing.T, w *World, f forge.Forge) {
	for _, fault := range []Fault{Answer(403), Answer(404), Answer(500), Limit(429, time.Minute), Lost()} {
		w.Always(CallRole, fault)
		w.Always(CallRepository, fault)
		role, err := f.Role(ctx(t), "olga")
		require.Error(t, err)
		assert.Equal(t, forge.None, role)
		w.Heal()
		w.Always(CallTeams, fault)
		teams, err := f.Teams(ctx(t), "ben", []string{"acme/platform"})
		require.Error(t, err)
		assert.Empty(t, teams)
		w.Heal()
	}
}

func hanging(t *testing.T, w *World, f forge.Forge) {
	w.Next(CallOpen, Hang())
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := f.Open(short, "main")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func lostAnswer(t *testing.T, w *World, f forge.Forge) {
	number := w.OpenPullRequest(Opening{})
	w.Next(CallComment, Lost())
	c, err := forge.Upsert(ctx(t), f, number, marker, "plan")
	require.NoError(t, err, "the comment is there, and was looked for")
	assert.NotZero(t, c.ID)
	w.Next(CallEditComment, Lost())
	_, err = forge.Upsert(ctx(t), f, number, marker, "plan 2")
	require.Error(t, err)
	_, err = forge.Upsert(ctx(t), f, number, marker, "plan 2")
	require.NoError(t, err)
	assert.Equal(t, 1, w.Writes(CallComment))
	assert.Equal(t, 1, w.Writes(CallEditComment), "what was written is read and not repeated")
	assert.Len(t, w.Comments(number), 1)

	other := w.OpenPullRequest(Opening{})
	w.Next(CallComment, Lost())
	w.Next(CallComments, Fault{}, Answer(500)) // the look afterwards fails as well
	_, err = forge.Upsert(ctx(t), f, other, marker, "plan")
	require.Error(t, err)
	_, err = forge.Upsert(ctx(t), f, other, marker, "plan")
	require.NoError(t, err)
	assert.Len(t, w.Comments(other), 1)
}

func staleList(t *testing.T, w *World, f forge.Forge) {
	number := w.OpenPullRequest(Opening{})
	stale := w.Stale()
	c, err := forge.Upsert(ctx(t), f, number, marker, "plan")
	require.NoError(t, err)
	w.Always(CallComments, stale)
	for range 3 {
		again, err := forge.Upsert(ctx(t), f, number, marker, "plan 2")
		require.NoError(t, err)
		assert.Equal(t, c.ID, again.ID)
	}
	assert.Len(t, w.Comments(number), 1)
}

func lostStatus(t *testing.T, w *World, f forge.Forge) {
	commit := madeUp("commit")
	want := []forge.Status{{Context: "sluice/chat", State: forge.Success, Text: "done"}}
	w.Next(CallSetStatus, Lost())
	_, err := forge.SetStatuses(ctx(t), f, commit, want)
	require.Error(t, err)
	written, err := forge.SetStatuses(ctx(t), f, commit, want)
	require.NoError(t, err)
	assert.Zero(t, written)
	assert.Len(t, w.Statuses(commit), 1)
}
