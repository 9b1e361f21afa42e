package testacc

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// planned is the part of a plan's JSON that rules read.
type planned struct {
	Changes []struct {
		Address string `json:"address"`
		Type    string `json:"type"`
		Change  struct {
			Actions       []string `json:"actions"`
			Before, After json.RawMessage
		} `json:"change"`
	} `json:"resource_changes"`
	Prior struct {
		Values struct {
			Root struct {
				Resources []struct {
					Type   string          `json:"type"`
					Values json.RawMessage `json:"values"`
				} `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	} `json:"prior_state"`
}

func readPlan(t *testing.T, raw []byte) planned {
	t.Helper()
	var p planned
	require.NoError(t, json.Unmarshal(raw, &p))
	return p
}

// rolloutChange is the change of the plan's rollout.
func (p planned) rolloutChange(t *testing.T) (actions []string, before, after map[string]any) {
	t.Helper()
	for _, c := range p.Changes {
		if c.Type == "sluice_rollout" {
			require.NoError(t, json.Unmarshal(c.Change.Before, &before))
			require.NoError(t, json.Unmarshal(c.Change.After, &after))
			return c.Change.Actions, before, after
		}
	}
	t.Fatal("the plan has no rollout")
	return nil, nil, nil
}

func planSchema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(filepath.Join("..", "docs", "schemas", name))
	require.NoError(t, err)
	return s
}

func keeps(t *testing.T, s *jsonschema.Schema, raw []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err)
	return s.Validate(v)
}

// Real plans of every strategy keep the JSON schemas that rules are written against.
func TestPlansKeepTheDocumentedJSONSchemas(t *testing.T) {
	t.Parallel()
	rollouts, previews := planSchema(t, "rollout.schema.json"), planSchema(t, "rollout_preview.schema.json")
	e := startEngine(t, policyEngine)
	w := newWorkspace(t, e, good().deployments())
	w.apply(t)
	for name, body := range map[string]string{
		"canary":     `canary = { steps = [{ traffic = 10 }, { traffic = 100 }] }` + "\n metrics = [" + latencyGate + "]",
		"blue_green": `blue_green = {}`,
		"rolling":    `rolling = {}`,
	} {
		block := func(kind string) string {
			return kind + ` "test" {
  endpoint_id          = sluice_endpoint.chat.id
  target_deployment_id = sluice_deployment.candidate.id
  ` + body + "\n}\n"
		}
		w.write(t, good().deployments()+block(`resource "sluice_rollout"`)+block(`data "sluice_rollout_preview"`))
		p := readPlan(t, w.planJSON(t))
		seen := 0
		for _, c := range p.Changes {
			if c.Type == "sluice_rollout" {
				require.NoError(t, keeps(t, rollouts, c.Change.After), name)
				seen++
			}
		}
		for _, r := range p.Prior.Values.Root.Resources {
			if r.Type == "sluice_rollout_preview" {
				require.NoError(t, keeps(t, previews, r.Values), name)
				require.Error(t, keeps(t, previews, bytes.ReplaceAll(r.Values, []byte(`"schema_version":1`), []byte(`"schema_version":9`))), "another version is another shape")
				seen++
			}
		}
		require.Equal(t, 2, seen, name)
	}
}

// What a person reads of a plan begins with one line of what will happen, and fits a
// terminal: no line of a warning is said twice.
func TestAPlanReadsWell(t *testing.T) {
	t.Parallel()
	e := startEngine(t, policyEngine)
	w := newWorkspace(t, e, good().deployments()+good().rollout())
	out, code := w.run(t, "plan", "-no-color", "-input=false")
	require.Zero(t, code, out)
	require.Contains(t, out, `+ summary                 = "canary 10 → 50 → 100 %, at least 21m9s, at most 10 % before the first gate"`)
	if path := os.Getenv("SLUICE_SHOW_PLAN"); path != "" {
		require.NoError(t, os.WriteFile(path, []byte(out), 0o600))
	}
}
