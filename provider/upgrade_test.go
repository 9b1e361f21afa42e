package provider

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/stretchr/testify/require"
)

// upgrades reads a state's attributes as Terraform has them read at the start of a run.
func (p *protocol) upgrades(t *testing.T, name string, version int64, attributes map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(attributes)
	require.NoError(t, err)
	got, err := p.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{TypeName: name, Version: version, RawState: &tfprotov6.RawState{JSON: raw}})
	require.NoError(t, err)
	require.Empty(t, got.Diagnostics, said(got.Diagnostics))
	state, _ := plain(t, p.schema.ResourceSchemas[name].ValueType(), got.UpgradedState).(map[string]any)
	return state
}

// The state that the provider's first version wrote is read without an engine: every
// value of it is there, and what a rollout did by default then is what it says now.
func TestAStateOfTheFirstVersionIsRead(t *testing.T) {
	p := newProtocol(t, nil)
	first, err := os.ReadFile("../testacc/testdata/first-schema/state.json")
	require.NoError(t, err)
	var wrote struct {
		Resources []struct {
			Type      string
			Instances []struct {
				Version    int64          `json:"schema_version"`
				Attributes map[string]any `json:"attributes"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(first, &wrote))
	seen := map[string]map[string]any{}
	for _, r := range wrote.Resources {
		was := r.Instances[0]
		require.Zero(t, was.Version)
		is := p.upgrades(t, r.Type, 0, was.Attributes)
		for k, v := range was.Attributes {
			if fields, nested := v.(map[string]any); nested {
				require.Subset(t, is[k], fields, "%s.%s", r.Type, k)
				continue
			}
			require.Equal(t, v, is[k], "%s.%s", r.Type, k)
		}
		seen[r.Type] = is
	}
	require.Len(t, seen, 3)
	rollout := seen["sluice_rollout"]
	require.Equal(t, wantCompleted, rollout["desired_state"])
	require.Equal(t, timeoutDetach, rollout["on_timeout"])

	// Version 0 was written with these attributes too.
	rollout["desired_state"], rollout["on_timeout"] = wantPaused, timeoutCancel
	again := p.upgrades(t, "sluice_rollout", 0, rollout)
	require.Equal(t, rollout, again)
	require.Equal(t, rollout, p.upgrades(t, "sluice_rollout", rolloutVersion, again))
}
