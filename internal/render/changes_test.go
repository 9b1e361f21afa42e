package render

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func changesOf(t *testing.T, visibility string) planning.Changes {
	t.Helper()
	set, found := declaration.LoadFiles([]declaration.File{{Name: "main.tf", Bytes: []byte(`
resource "sluice_endpoint" "chat" { name = "chat" }
resource "sluice_endpoint" "voice" { name = "voice" }
resource "sluice_deployment" "a" {
  endpoint_id = sluice_endpoint.voice.id
  name        = "a\u001b[31m"
  model       = "demo/a"
  autoscaling = { min_replicas = 1, max_replicas = 2 }
}
`)}}, declaration.Options{})
	require.NoError(t, found.Err())
	standing := planning.Standing{Timings: rollout.DefaultTimings(), Endpoints: []planning.StandingEndpoint{{Endpoint: api.Endpoint{ID: "ep_1", Name: "acme/chat", Visibility: visibility}}}}
	changes, err := planning.CompareSince(set, set, standing, planning.Bindings{{Kind: declaration.EndpointKind, Name: "talk"}: "ep_1"})
	require.NoError(t, err)
	return changes
}

// A plan as a person reads it: what is made, what differs and whose it is, what moved.
func TestThePlanOfAFolderReadsWell(t *testing.T) {
	var b bytes.Buffer
	changes := changesOf(t, api.VisibilityInternal)
	require.NoError(t, Changes(&b, changes, Options{}))
	require.Equal(t, `~ sluice_endpoint.chat (ep_1), was sluice_endpoint.talk
    visibility  "INTERNAL" → "PRIVATE"  · theirs: somebody changed what is live
+ sluice_endpoint.voice
    name "voice", PRIVATE
+ sluice_deployment.a
    name "a\\x1b[31m", model "demo/a", 1 to 2 replicas

0 rollouts, 2 created, 1 updated, 0 replaced, 0 destroyed, 1 moved  (plan digest `+planning.ShortDigest(changes.Digest())+`)
`, b.String())
	kept := changesOf(t, api.VisibilityPrivate)
	require.Equal(t, Change{Address: "sluice_endpoint.chat", Action: planning.NoOp, ID: "ep_1", From: "sluice_endpoint.talk"}, ChangesOf(kept)[0])
	require.Empty(t, ChangesOf(changes)[0].Fields, "what is theirs stands beside what is yours")
}
