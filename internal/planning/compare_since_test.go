package planning

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

var (
	chatAt = at(declaration.EndpointKind, "chat")
	aAt    = at(declaration.DeploymentKind, "a")
	bAt    = at(declaration.DeploymentKind, "b")
	abAt   = at(declaration.RolloutKind, "ab")
)

func boundAll() Bindings { return Bindings{chatAt: "ep_1", aAt: "dep_a", bAt: "dep_b", abAt: "rol_1"} }

func since(t *testing.T, applied, now string, s Standing, bound Bindings) Changes {
	t.Helper()
	got, err := CompareSince(setOf(t, now), setOf(t, applied), s, bound)
	require.NoError(t, err)
	return got
}

func changeOf(t *testing.T, cs Changes, a declaration.Address) Change {
	t.Helper()
	c, ok := cs.Find(a.String())
	require.True(t, ok, a)
	return c
}

// J9: a spec change and a hand edit at once are one plan that shows both apart.
func TestYoursAndTheirsAreToldApartInOnePlan(t *testing.T) {
	w := world()
	w.Endpoints[0].Visibility = api.VisibilityInternal
	w.Endpoints[0].All[0].Autoscaling = bounded(3, 4)
	got := since(t, chat, strings.Replace(chat, "max_replicas = 4", "max_replicas = 8", 1), w, nil)
	require.Len(t, got.Pending(), 2)
	require.Equal(t, []FieldChange{{Path: "visibility", Before: json.RawMessage(`"INTERNAL"`), After: json.RawMessage(`"PRIVATE"`), Whose: Theirs}}, changeOf(t, got, chatAt).Fields)
	a := changeOf(t, got, aAt)
	require.Equal(t, Update, a.Action)
	require.Equal(t, "autoscaling.min_replicas", a.Fields[0].Path)
	require.Equal(t, Theirs, a.Fields[0].Whose)
	require.Equal(t, "autoscaling.max_replicas", a.Fields[1].Path)
	require.Equal(t, Yours, a.Fields[1].Whose)
	require.Equal(t, "4 8", string(a.Fields[1].Before)+" "+string(a.Fields[1].After))
	untold := compared(t, chat, w, nil)
	require.Equal(t, Untold, changeOf(t, untold, chatAt).Fields[0].Whose, "without memory nobody is blamed")
}

// What a rollout has left stays, until the file itself says something else.
func TestBoundsThatARolloutLeftAreWrittenOnlyWhenTheFileChanges(t *testing.T) {
	set := setOf(t, chat+shift)
	w := world(rolloutIn(rollout.Completed, set))
	w.Endpoints[0].All[0].Autoscaling, w.Endpoints[0].All[1].Autoscaling = bounded(0, 0), bounded(2, 4)
	w.Endpoints[0].All[1].Status.ReadyReplicas = 2
	w.Endpoints[0].TrafficSplit = []api.TrafficWeight{{DeploymentID: "dep_b", Weight: 1}}
	require.Empty(t, since(t, chat+shift, chat+shift, w, boundAll()).Pending())
	grown := strings.Replace(chat, "min_replicas = 0, max_replicas = 0", "min_replicas = 2, max_replicas = 9", 1) + shift
	b := changeOf(t, since(t, chat+shift, grown, w, boundAll()), bAt)
	require.Equal(t, Update, b.Action)
	require.Equal(t, "autoscaling.max_replicas", b.Fields[0].Path)
	require.Equal(t, Yours, b.Fields[0].Whose)
	stopped := since(t, grown, chat+shift, w, boundAll())
	require.Contains(t, changeOf(t, stopped, bAt).Blocked, "serves all of its endpoint's traffic and is not stopped")
}

// J5: an address that changes is a move, never a delete and a create.
func TestARenamedBlockIsMovedAndDestroysNothing(t *testing.T) {
	set := setOf(t, chat+shift)
	w := world(rolloutIn(rollout.Stabilizing, set))
	talk := strings.NewReplacer(`"sluice_endpoint" "chat"`, `"sluice_endpoint" "talk"`, "sluice_endpoint.chat", "sluice_endpoint.talk").Replace(chat + shift)
	withMoved := talk + "moved {\n  from = sluice_endpoint.chat\n  to   = sluice_endpoint.talk\n}\n"
	for name, hcl := range map[string]string{"by its moved block": withMoved, "by its name": talk} {
		got := compared(t, hcl, w, boundAll())
		require.Equal(t, Counts{Moved: 1}, got.Counts(), name)
		require.Contains(t, got.Summary(), "0 destroyed, 1 moved", name)
		talkChange := changeOf(t, got, at(declaration.EndpointKind, "talk"))
		require.Equal(t, chatAt, *talkChange.Previous, name)
		require.Equal(t, "ep_1", talkChange.ID, name)
		doc, err := got.JSON()
		require.NoError(t, err)
		require.Contains(t, string(doc), `"previous_address":"sluice_endpoint.chat"`)
	}
	renamed := strings.Replace(shift, `"sluice_rollout" "ab"`, `"sluice_rollout" "other"`, 1)
	got := compared(t, chat+renamed, w, boundAll())
	require.Equal(t, Counts{Moved: 1}, got.Counts())
	require.Equal(t, "rol_1", changeOf(t, got, at(declaration.RolloutKind, "other")).ID)
	counted := strings.Replace(chat, `"sluice_endpoint" "chat" {`, "\"sluice_endpoint\" \"chat\" {\n  count = 1", 1)
	counted = strings.ReplaceAll(counted, "sluice_endpoint.chat.id", "sluice_endpoint.chat[0].id")
	require.Equal(t, 1, compared(t, counted, w, Bindings{chatAt: "ep_1"}).Counts().Moved)
}

// What is bound and declared no more is a candidate for deletion, in the reverse order.
func TestWhatIsDeclaredNoMoreIsDeletedLastThingFirst(t *testing.T) {
	set := setOf(t, chat+shift)
	w := world(rolloutIn(rollout.Completed, set))
	applied := strings.Replace(chat, "  name = \"chat\"\n", "  name = \"chat\"\n  lifecycle {\n    prevent_destroy = true\n  }\n", 1) + shift
	got := since(t, applied, `locals { nothing = 1 }`, w, boundAll())
	var order []string
	for _, c := range got.List {
		require.Equal(t, Delete, c.Action)
		order = append(order, c.Address.String())
	}
	require.Equal(t, []string{"sluice_rollout.ab", "sluice_deployment.b", "sluice_deployment.a", "sluice_endpoint.chat"}, order)
	require.True(t, changeOf(t, got, chatAt).Protected)
	require.Contains(t, changeOf(t, got, aAt).Blocked, "100 % of its endpoint's traffic")
	require.Empty(t, changeOf(t, got, bAt).Blocked)
	require.Empty(t, since(t, applied, `locals { nothing = 1 }`, Standing{}, boundAll()).List, "what is gone already needs nothing")
	require.Empty(t, compared(t, `locals { nothing = 1 }`, w, nil).List, "what was never bound is somebody else's")
}

// A rollout that runs is waited for, one of another spec holds the endpoint.
func TestWhatRunsIsTakenOverAndWhatElseRunsHolds(t *testing.T) {
	set := setOf(t, chat+shift)
	running := world(rolloutIn(rollout.Running, set))
	same := changeOf(t, compared(t, chat+shift, running, nil), abAt)
	require.Equal(t, NoOp, same.Action)
	require.True(t, same.Waits)
	require.Contains(t, same.Notes[0], "taken over")
	pending := changeOf(t, compared(t, chat+shift, world(rolloutIn(rollout.Pending, set)), nil), abAt)
	require.Equal(t, Start, pending.Action)
	other := strings.Replace(shift, "traffic = 10", "traffic = 20", 1)
	held := changeOf(t, compared(t, chat+other, running, nil), abAt)
	require.Equal(t, Create, held.Action)
	require.Equal(t, "rol_1", held.BlockedBy)
	replaced := changeOf(t, compared(t, chat+other, running, boundAll()), abAt)
	require.Equal(t, Replace, replaced.Action)
	require.Equal(t, "rol_1", replaced.BlockedBy)
	require.Contains(t, replaced.Blocked, "spec changed")
	freezes := strings.Replace(other, "  canary", "  destroy_behavior = \"cancel\"\n  canary", 1)
	allowed := changeOf(t, compared(t, chat+freezes, running, boundAll()), abAt)
	require.Empty(t, allowed.Blocked, "destroy_behavior lets it be frozen first")
	require.Equal(t, Replace, allowed.Action)
}

// A reverse rollout makes live ahead of the file: told, and never run forward again.
func TestALaterRolloutThatWentBackIsNotUndone(t *testing.T) {
	set := setOf(t, chat+shift)
	forward := rolloutIn(rollout.Completed, set)
	back := api.Rollout{ID: "rol_2", EndpointID: "ep_1", SourceDeploymentID: "dep_b", TargetDeploymentID: "dep_a", State: "ROLLOUT_STATE_COMPLETED", CreatedAt: api.At(forward.CreatedAt.Add(time.Hour)), Sluice: &api.RolloutExtra{Digest: "sha256:other"}}
	for _, bound := range []Bindings{nil, boundAll()} {
		ab := changeOf(t, compared(t, chat+shift, world(back, forward), bound), abAt)
		require.Equal(t, NoOp, ab.Action)
		require.Contains(t, strings.Join(ab.Notes, " "), "live is ahead of the file: rol_2 moved the traffic back")
	}
}

// What turns on a change of the file needs the memory of what was applied.
func TestAParkIsLiftedOnlyByANewToken(t *testing.T) {
	set := setOf(t, chat+shift)
	parked := world(rolloutIn(rollout.SystemPaused, set))
	token := func(text string) string {
		return chat + strings.Replace(shift, "  canary", "  resume_token = \""+text+"\"\n  canary", 1)
	}
	require.Equal(t, NoOp, changeOf(t, compared(t, token("seen"), parked, boundAll()), abAt).Action, "no memory, no resume")
	require.Equal(t, NoOp, changeOf(t, since(t, token("seen"), token("seen"), parked, boundAll()), abAt).Action)
	lifted := changeOf(t, since(t, token("monday"), token("tuesday"), parked, boundAll()), abAt)
	require.Equal(t, Steer, lifted.Action)
	require.Equal(t, SendResume, lifted.Control)
	paused := chat + strings.Replace(shift, "  canary", "  desired_state = \"paused\"\n  canary", 1)
	running := world(rolloutIn(rollout.Running, set))
	require.Equal(t, SendPause, changeOf(t, compared(t, paused, running, boundAll()), abAt).Control)
	require.Contains(t, changeOf(t, compared(t, paused, world(), nil), abAt).Blocked, "a new rollout starts with desired_state")
}

// J1: two owners of one endpoint do not take turns.
func TestWhatBelongsToAnotherOwnerIsNotWritten(t *testing.T) {
	w := world()
	w.Endpoints[0].Owner = "infra/voice"
	w.Endpoints[0].Visibility = api.VisibilityInternal
	got := compared(t, chat+shift, w, nil)
	for _, c := range got.Pending() {
		require.Contains(t, c.Blocked, "infra/voice", c.Address)
	}
	require.Len(t, got.Pending(), 2)
	digest := got.Digest()
	w.Endpoints[0].Owner, w.Endpoints[0].Keeper = "", "infra/voice"
	got = compared(t, chat+shift, w, nil)
	for _, c := range got.List { // where a plan is only shown
		require.Empty(t, c.Blocked)
		require.Equal(t, c.Pending(), slices.Contains(c.Notes, "endpoint chat is reconciled by infra/voice: a merge applies this, sluice apply does not"), c.Address)
	}
	require.Equal(t, digest, got.Digest())
	_, second, _ := strings.Cut(chat, `resource "sluice_deployment" "b"`)
	twice := chat + `resource "sluice_deployment" "c"` + second
	require.Contains(t, changeOf(t, compared(t, twice, world(), nil), at(declaration.DeploymentKind, "c")).Blocked, "is declared by sluice_deployment.b already")
}

// What is sensitive is shown as such, and never in a field.
func TestASensitiveValueIsMarkedInThePlan(t *testing.T) {
	hcl := "variable \"name\" {\n  sensitive = true\n  default   = \"chat\"\n}\n" + strings.Replace(chat, `name = "chat"`, "name = var.name", 1)
	w := world()
	w.Endpoints[0].Name = "acme/other"
	c := changeOf(t, compared(t, hcl, w, Bindings{chatAt: "ep_1"}), chatAt)
	require.Equal(t, Replace, c.Action)
	require.True(t, c.Fields[0].Sensitive)
}
