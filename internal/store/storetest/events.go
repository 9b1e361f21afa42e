package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func eventsPage(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx := t.Context()
	for i := range 10 {
		// The same instant for all, and another endpoint's rows in between.
		commit(t, s, rollout.Change{Events: []rollout.Event{
			{EndpointID: "ep_1", At: instant, Type: "x", Message: fmt.Sprint(i)}, {EndpointID: "ep_2", At: instant, Type: "x"},
		}})
	}
	var seen []string
	var before int64
	for pages := 1; ; pages++ {
		rows, next, err := s.Events(ctx, rollout.EventQuery{EndpointID: "ep_1", Before: before, Limit: 5})
		require.NoError(t, err)
		require.NotEmpty(t, rows, "a cursor never leads to an empty page")
		for _, e := range rows {
			seen = append(seen, e.Message)
		}
		if pages == 1 { // rows that come meanwhile do not shift the pages
			commit(t, s, rollout.Change{Events: []rollout.Event{{EndpointID: "ep_1", At: instant, Type: "x", Message: "late"}}})
		}
		if before = next; next == 0 {
			require.Equal(t, 2, pages)
			break
		}
	}
	require.Equal(t, []string{"9", "8", "7", "6", "5", "4", "3", "2", "1", "0"}, seen)
	rows, next, err := s.Events(ctx, rollout.EventQuery{EndpointID: "ep_none", Limit: 5})
	require.NoError(t, err)
	require.Empty(t, rows)
	require.Zero(t, next)
}

func eventConditions(t *testing.T, open Opener) {
	s := opened(t, open)
	at := func(n int) time.Time { return instant.Add(time.Duration(n) * time.Second) }
	step, old := 0, 0
	commit(t, s, rollout.Change{Events: []rollout.Event{
		{EndpointID: "ep_1", At: at(0), Type: "endpoint.created", Level: rollout.LevelInfo, Message: "0"},
		{EndpointID: "ep_1", At: at(1), Type: "deployment.scaled", Level: rollout.LevelDebug, Deployment: "dep_1", Message: "1"},
		{EndpointID: "ep_1", At: at(2), Type: "deployment.scaled", Level: rollout.LevelWarn, Deployment: "dep_2", Message: "2"},
		{EndpointID: "ep_1", At: at(3), Type: "rollout.started", Level: rollout.LevelInfo, Subject: "rol_1", Step: &step, OldPercent: &old, Message: "3"},
		{EndpointID: "ep_1", At: at(4), Type: "rollout.system_paused", Level: rollout.LevelError, Subject: "rol_1", Message: "4"},
	}})
	for _, c := range []struct {
		name string
		q    rollout.EventQuery
		want []string
	}{
		{"everything", rollout.EventQuery{}, []string{"4", "3", "2", "1", "0"}},
		{"types", rollout.EventQuery{Types: []string{"rollout.started", "endpoint.created"}}, []string{"3", "0"}},
		{"an unknown type", rollout.EventQuery{Types: []string{"nothing' OR 1=1"}}, nil},
		{"subject", rollout.EventQuery{Subject: "rol_1"}, []string{"4", "3"}},
		{"deployments hide the endpoint's own rows", rollout.EventQuery{Deployments: []string{"dep_1", "dep_2"}}, []string{"2", "1"}},
		{"unless they are asked for", rollout.EventQuery{Deployments: []string{"dep_1"}, Kinds: []string{"ENDPOINT", "DEPLOYMENT"}}, []string{"4", "3", "1", "0"}},
		{"kind endpoint alone beats deployments", rollout.EventQuery{Deployments: []string{"dep_1"}, Kinds: []string{"ENDPOINT"}}, []string{"4", "3", "0"}},
		{"kind deployment", rollout.EventQuery{Kinds: []string{"DEPLOYMENT"}}, []string{"2", "1"}},
		{"kind deployment of one", rollout.EventQuery{Kinds: []string{"DEPLOYMENT"}, Deployments: []string{"dep_2"}}, []string{"2"}},
		{"level", rollout.EventQuery{MinLevel: rollout.LevelWarn}, []string{"4", "2"}},
		{"since is inclusive", rollout.EventQuery{Since: at(3)}, []string{"4", "3"}},
		{"until a year that no nanosecond count reaches", rollout.EventQuery{Until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, []string{"4", "3", "2", "1", "0"}},
		{"since such a year", rollout.EventQuery{Since: time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)}, nil},
		{"until is exclusive", rollout.EventQuery{Until: at(3)}, []string{"2", "1", "0"}},
		{"all at once", rollout.EventQuery{Types: []string{"rollout.started", "rollout.system_paused"}, Subject: "rol_1", MinLevel: rollout.LevelWarn, Since: at(0), Until: at(9)}, []string{"4"}},
		{"all at once, one of them against", rollout.EventQuery{Types: []string{"rollout.started"}, Subject: "rol_1", MinLevel: rollout.LevelWarn}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.q.EndpointID = "ep_1"
			for _, limit := range []int{1, 100} { // with and without paging
				c.q.Limit, c.q.Before = limit, 0
				var got []string
				for {
					rows, next, err := s.Events(t.Context(), c.q)
					require.NoError(t, err)
					for _, e := range rows {
						got = append(got, e.Message)
					}
					if c.q.Before = next; next == 0 {
						break
					}
				}
				require.Equal(t, c.want, got)
			}
		})
	}
	rows, _, err := s.Events(t.Context(), rollout.EventQuery{EndpointID: "ep_1", Subject: "rol_1", Limit: 5})
	require.NoError(t, err)
	require.NotNil(t, rows[1].Step, "an explicit zero stays one")
	require.NotNil(t, rows[1].OldPercent)
}
