package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// J1 over the wire.
func TestJ1AnEndpointTellsItsOwnerAndRefusesAnother(t *testing.T) {
	d := newDoor(t)
	ep, source, _ := d.endpoint("chat")
	at := base + "/" + ep
	edit := func(key, owner string) answer { return d.as(key, "PATCH", at, `{"sluice":{"owner":`+owner+`}}`) }
	owner := func() any {
		o, _ := d.call("GET", at, "").ok().json()["sluice"].(map[string]any)["owner"].(map[string]any)
		return o["id"]
	}
	require.Nil(t, owner())
	edit(d.reader, `{"claim":"a"}`).refused(403, "PERMISSION_DENIED")
	got := edit(d.writer, `{"claim":"a"}`).ok().json()
	require.Contains(t, got["sluice"].(map[string]any)["owner"], "at")
	edit(d.writer, `{"claim":"a"}`).ok()
	edit(d.writer, `{"claim":"b"}`).refused(409, "LOCKED", `owned by "a"`)
	edit(d.writer, `{"release":"b"}`).refused(409, "LOCKED", `owned by "a"`)
	require.Equal(t, "a", owner())
	require.Equal(t, "a", d.call("GET", base, "").json()["data"].([]any)[0].(map[string]any)["sluice"].(map[string]any)["owner"].(map[string]any)["id"])

	force := `{"claim":"b","force":{"reason":"a is gone"}}`
	edit(d.writer, force).refused(403, "PERMISSION_DENIED", "break-glass")
	edit(d.admin, force).refused(403, "PERMISSION_DENIED", "break-glass")
	k, breaker, err := d.engine.NewKey("ana", []rollout.Scope{rollout.ScopeOperate, rollout.ScopeBreakGlass})
	require.NoError(t, err)
	require.NoError(t, d.engine.SaveKey(t.Context(), k))
	edit(breaker, `{"claim":"b","force":{"reason":""}}`).refused(400, "INVALID_ARGUMENT", "say why")
	edit(breaker, force).ok()
	require.Equal(t, "b", owner())

	edit(d.writer, `{}`).refused(400, "INVALID_ARGUMENT", "claim")
	d.as(d.writer, "PATCH", at, `{"trafficSplit":[{"deploymentId":"`+source+`","weight":2}],"sluice":{"owner":{"release":"b"}}}`).refused(400, "INVALID_ARGUMENT", "alone")
	d.as(d.writer, "PATCH", at, `{"etag":"1","sluice":{"owner":{"release":"b"}}}`).refused(409, "ABORTED")
	d.as(d.writer, "PATCH", at, `{"trafficSplit":[{"deploymentId":"`+source+`","weight":2}]}`).ok()
	require.Equal(t, "b", owner(), "it keeps nobody from writing, and writes keep it")
	edit(d.writer, `{"release":"b"}`).ok()
	require.Nil(t, owner())
	require.Contains(t, d.call("GET", "/whoami", "").ok().json()["sluice"].(map[string]any)["capabilities"], "owner")
}
