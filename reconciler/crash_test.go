package reconciler

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// story is a life of an endpoint from Git, with all that a reconciler does, which can be
// interrupted at any boundary of the process that tells it.
type story struct {
	*stage
	git   *memoryRemote
	forge *forgetest.World
	life  *life
	heard map[string][]notify.Event // by id
	ended string                    // where the process was ended; empty while it was not
}

// newStory is a story whose first process ends at a boundary; 0 for none.
func newStory(t *testing.T, end int, how ending) *story {
	w := newStage(t)
	s := &story{stage: w, heard: map[string][]notify.Event{}}
	s.git = w.follow("models", map[string]string{"prod/main.tf": shortSteps(canaryHouse("chat")), "prod/old.tf": oldHouse})
	s.forge = w.forgeOf("models")
	rc := w.repository("models")
	rc.Drift, rc.Prune = CorrectDrift, PruneConfig{Mode: PruneOn, MostShrink: 40}
	s.live(end, how)
	return s
}

// oldHouse is a deployment that Git takes away at the end.
const oldHouse = `
resource "sluice_deployment" "old" {
  endpoint_id = sluice_endpoint.e.id
  name        = "old"
  model       = "m/c"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
`

// shortSteps makes the steps of a declaration follow each other soon.
func shortSteps(house string) string {
	return strings.Replace(house, `step_interval = "10m"`, `step_interval = "1m"`, 1)
}

func (s *story) hear(e notify.Event) {
	s.heard[e.ID()] = append(s.heard[e.ID()], e)
}

// live starts a process and lets it take the lease.
func (s *story) live(end int, how ending) {
	s.life = newLife(s.stage, end, how, s.hear)
	s.r = s.life.r
	err, alive := s.life.do(func(r *Reconciler) error { return r.Begin(s.t.Context()) })
	if !alive {
		s.goOn()
		return
	}
	if how == fails && errors.Is(err, journal.ErrUnavailable) { // the process ends and is started again
		s.advance(leaseFor + time.Second)
		s.live(0, how)
		s.ended = "the beginning"
		return
	}
	require.NoError(s.t, err)
}

// turn is one pass of the process that lives.
func (s *story) turn() {
	began := s.now
	err, alive := s.life.do(func(r *Reconciler) error { return r.Once(s.t.Context()) })
	if !alive {
		s.goOn()
		return
	}
	if s.ended == "" && s.life.how == fails && errors.Is(err, journal.ErrUnavailable) {
		s.ended = fmt.Sprintf("boundary %d (%s)", s.life.end, s.life.passed[s.life.end-1].what)
		s.lookAgain()
		return
	}
	require.NoError(s.t, err, s.ended)
	s.nothingOpen(began)
}

// nothingOpen checks that no intent is older than a pass that ended well.
func (s *story) nothingOpen(began time.Time) {
	open, err := s.journal.Open(s.t.Context())
	require.NoError(s.t, err)
	for _, in := range open {
		require.False(s.t, in.At.Before(began), "%s: intent %s %s is still open", s.ended, in.Verb, in.Address)
	}
}

// goOn lets another process take over from one that has died or frozen, checks that its
// first look tells the truth, and thaws the frozen one, which must not write any more.
func (s *story) goOn() {
	last := s.life
	s.ended = fmt.Sprintf("boundary %d (%s)", last.end, last.passed[last.end-1].what)
	s.advance(leaseFor + time.Second)
	s.live(0, dies)
	s.lookAgain()
	if last.how == freezes {
		last.resume()
		require.Zero(s.t, last.writes, "%s: what was thawed has written", s.ended)
	}
}

// lookAgain makes the next pass, and checks that the status is true then. What a pass does
// itself is seen by the one after it.
func (s *story) lookAgain() {
	for range 4 {
		n := len(s.calls)
		s.turn()
		if len(s.writes(n)) == 0 {
			break
		}
	}
	s.truth()
}

// truth checks that the status says what stands at the engine.
func (s *story) truth() {
	k := s.stack("models", "prod")
	if len(s.endpoints()) == 0 {
		return
	}
	want := map[string]string{}
	for _, r := range s.all("chat") {
		if !engineclient.Terminal(r.State) {
			want[r.ID] = engineclient.Short(r.State)
		}
	}
	got := map[string]string{}
	for _, r := range k.Rollouts {
		if !engineclient.Terminal(api.PrefixRolloutState + r.State) {
			got[r.ID] = r.State
		}
	}
	require.Equal(s.t, want, got, "%s\n%s", s.ended, s.show())
	for _, state := range want {
		switch api.PrefixRolloutState + state {
		case engineclient.StateSystemPaused, engineclient.StatePaused:
			require.Equal(s.t, Parked, k.Phase, "%s\n%s", s.ended, s.show())
		default:
			require.Equal(s.t, RollingOut, k.Phase, "%s\n%s", s.ended, s.show())
		}
	}
}

func (s *story) endpoints() []api.Endpoint {
	out, err := engineclient.Collect(s.Client.Endpoints(s.t.Context(), engineclient.ListOptions{}))
	require.NoError(s.t, err)
	return out
}

// till lets time go by, pass by pass, until something is so.
func (s *story) till(what string, so func() bool) {
	s.t.Helper()
	for until := s.now.Add(12 * time.Hour); !so(); s.advance(2 * time.Minute) {
		require.True(s.t, s.now.Before(until), "%s: %s does not come\n%s", s.ended, what, s.show())
		s.turn()
	}
}

func (s *story) phase(p Phase) func() bool {
	return func() bool { return s.stack("models", "prod").Phase == p }
}

func (s *story) states(want ...string) func() bool {
	return func() bool {
		var got []string
		for _, r := range s.all("chat") {
			got = append(got, r.State)
		}
		return slices.Equal(got, want)
	}
}

// slow makes the candidate slow at a gate, or not any more.
func (s *story) slow(ms float64) {
	for _, d := range s.endpoint("chat").Deployments {
		if strings.HasSuffix(d.Name, "candidate") {
			s.meter.value[d.ID] = ms
		}
	}
}

// tell plays the whole story.
func (s *story) tell() {
	s.till("the endpoint serves", func() bool { return s.phase(InStep)() && s.serves("chat", "stable", 2) })
	c := s.propose(s.git, s.forge, "canary", map[string]string{"prod/main.tf": shortSteps(canaryHouse("chat", 10, 100))})
	s.till("the plan is shown", func() bool { return strings.Contains(c.comment(), "sluice_rollout.r") })
	s.slow(400)
	c.merge()
	s.till("the park is told", func() bool {
		return s.phase(Parked)() && strings.Contains(c.comment(), "METRIC_REGRESSION")
	})
	s.forge.Say(c.number, "zoe", "/sluice cancel because I say so")
	s.forge.Say(c.number, "ann", "/sluice cancel p95 doubled")
	s.till("it is canceled", func() bool { return s.states(engineclient.StateCanceled)() && s.phase(Ahead)() })
	s.forge.Say(c.number, "ann", "/sluice reverse nobody needs it")
	s.till("it is taken back", func() bool {
		return s.states(engineclient.StateCanceled, engineclient.StateCompleted)() && s.phase(Ahead)()
	})
	s.slow(100)
	s.git.push("main", "slower", map[string]string{"prod/main.tf": shortSteps(canaryHouse("chat", 5, 100))})
	s.till("the second commit is rolled out", func() bool {
		return s.states(engineclient.StateCanceled, engineclient.StateCompleted, engineclient.StateCompleted)() && s.phase(InStep)()
	})
	internal := api.VisibilityInternal
	_, err := s.person("bob").UpdateEndpoint(s.t.Context(), s.endpoint("chat").ID, "visibility", api.UpdateEndpoint{Visibility: &internal})
	require.NoError(s.t, err)
	s.till("the drift is put right", func() bool { return s.endpoint("chat").Visibility == api.VisibilityPrivate && s.phase(InStep)() })
	s.git.push("main", "without the old one", map[string]string{"prod/old.tf": ""})
	s.till("the old one is gone", func() bool { return len(s.endpoint("chat").Deployments) == 2 && s.phase(InStep)() })
	for range 3 {
		s.turn()
		s.advance(time.Minute)
	}
}

// names are the ids of a story, which differ from world to world, by what they are.
func (s *story) names() *strings.Replacer {
	var pairs []string
	for i, r := range s.all("chat") {
		pairs = append(pairs, r.ID, fmt.Sprintf("rollout%d", i+1))
	}
	ep := s.endpoint("chat")
	pairs = append(pairs, ep.ID, "chat")
	for _, d := range ep.Deployments {
		pairs = append(pairs, d.ID, d.Name)
	}
	return strings.NewReplacer(pairs...)
}

// outcome is where everything is at the end of a story, without clocks.
func (s *story) outcome() string {
	var out strings.Builder
	ep := s.endpoint("chat")
	fmt.Fprintf(&out, "endpoint %s lock %q\n", ep.Visibility, ep.ActiveRolloutID)
	for _, d := range ep.Deployments {
		fmt.Fprintf(&out, "deployment %s %s %s ready %d\n", d.Name, d.State, bounds(d.Autoscaling), d.ReadyReplicas)
	}
	for _, r := range s.all("chat") {
		fmt.Fprintf(&out, "rollout %s %s to %s\n", engineclient.Short(r.State), r.SourceDeploymentID, r.TargetDeploymentID)
	}
	for _, c := range s.forge.Comments(1) {
		first, _, _ := strings.Cut(c.Body, " repository=")
		fmt.Fprintf(&out, "comment of %s: %.18s %v\n", c.Author, first, slices.DeleteFunc(s.forge.Signs(c.ID), func(g forge.Sign) bool { return g == forge.Seen }))
	}
	seen := map[string]bool{}
	for id := range s.git.commits {
		for _, st := range s.forge.Statuses(id) {
			seen[id+" "+st.Context] = true
		}
	}
	for _, k := range sortedKeys(seen) {
		id, _, _ := strings.Cut(k, " ")
		all := s.forge.Statuses(id)
		fmt.Fprintf(&out, "status %s %s\n", k, all[len(all)-1].State)
	}
	fmt.Fprintf(&out, "stack %s\n", s.stack("models", "prod").Phase)
	lines := strings.Split(s.names().Replace(out.String()), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// told is what history tells and people have heard, without what depends on when somebody
// looked, and on whether a thing was recorded by the process that made it.
func (s *story) told() string {
	names := s.names()
	seen := map[string]bool{}
	for e, err := range s.journal.History(s.t.Context(), journal.Query{}) {
		require.NoError(s.t, err)
		kind := e.Kind
		switch family, _, _ := strings.Cut(kind, "."); {
		case slices.Contains([]string{"apply.create", "apply.replace", "apply.start", "apply.taken_in"}, kind):
			kind = "apply"
		case slices.Contains([]string{"apply.delete", "apply.gone"}, kind):
			kind = "gone"
		case slices.Contains([]string{"stack", "recovered"}, family), slices.Contains(passing, kind):
			continue
		}
		seen["history "+kind+" "+e.Commit+" "+s.about(kind, e.Text)] = true
	}
	for id, all := range s.heard {
		e := all[0]
		for _, again := range all[1:] {
			require.Equal(s.t, e.Text, again.Text, "%s: %s is told twice in other words", s.ended, id)
		}
		seen["heard "+e.Kind+" "+e.Commit+" "+s.about(e.Kind, e.Text)] = true
	}
	return names.Replace(strings.Join(sortedKeys(seen), "\n"))
}

// passing are the moments that a look may miss.
var passing = []string{"rollout.pending", "rollout.starting", "rollout.running", "rollout.stabilizing", "rollout.cancelling"}

// someID finds a rollout or an address that a text names, and asks.
var someID = regexp.MustCompile(`rol_[0-9a-f]{20}|sluice_[a-z]+\.[a-z]+|asked by [a-z]+`)

// about is what a text is about: the things that it names.
func (s *story) about(kind, text string) string {
	found := someID.FindAllString(text, -1)
	if kind == "run.superseded" || strings.HasPrefix(kind, "source.") {
		return text
	}
	return strings.Join(found, " ")
}

// A process that dies before or after any commit, any write at the engine or the forge, or
// any notification loses nothing and does nothing twice: the story comes to the same end.
// E5, E7.
func TestADeathAtAnyBoundaryLosesNothingAndDoesNothingTwice(t *testing.T) {
	everywhere(t, dies, stride, func(boundary) bool { return true })
}

// A process that freezes at any boundary while another takes over writes nothing any more
// when it thaws, and the story comes to the same end. Between the look at the lease and a
// write there is nothing to freeze at but the sending itself, so those before are left out.
// E1.
func TestWhatFreezesAtAnyBoundaryWritesNothingWhenItThaws(t *testing.T) {
	everywhere(t, freezes, stride, func(b boundary) bool {
		return b.what == "commit before" || strings.HasSuffix(b.what, " after")
	})
}

// A journal that fails once, having written or not, is read again by the next pass: the
// story comes to the same end. Every third commit is tried: a death at each is above.
func TestAJournalThatFailsOnceAtAnyCommitLosesNothing(t *testing.T) {
	everywhere(t, fails, 3*stride, func(b boundary) bool { return strings.HasPrefix(b.what, "commit ") })
}

// everywhere plays the story once as it is, and once for each boundary of it. Two that
// follow each other in one instant with nothing between them are the same to the world:
// the one after what was done and the one before what is next. The latter is tried. Of
// those, one of so many is played.
func everywhere(t *testing.T, how ending, every int, tried func(boundary) bool) {
	whole := newStory(t, 0, how)
	whole.tell()
	want, passed := whole.end(), whole.life.passed
	require.Greater(t, len(passed), 200)
	n := 0
	for i, b := range passed {
		same := i+1 < len(passed) && strings.HasSuffix(b.what, " after") && passed[i+1].at.Equal(b.at) && tried(passed[i+1]) && how != fails
		if same || !tried(b) {
			continue
		}
		if n++; n%every != 0 {
			continue
		}
		t.Run(fmt.Sprintf("%03d %s", i+1, b.what), func(t *testing.T) {
			t.Parallel()
			s := newStory(t, i+1, how)
			s.tell()
			require.NotEmpty(t, s.ended, "the story does not come to the boundary")
			s.endsLike(want)
		})
	}
}

// ending is what a story comes to.
type storyEnd struct {
	world, told string
}

func (s *story) end() storyEnd { return storyEnd{s.outcome(), s.told()} }

// endsLike compares the end of an interrupted story with that of one that was not. An
// update whose process died says no more than that it was begun; it may be made again.
func (s *story) endsLike(want storyEnd) {
	s.t.Helper()
	got := s.end()
	require.Equal(s.t, want.world, got.world, s.ended)
	for e, err := range s.journal.History(s.t.Context(), journal.Query{Kind: "recovered"}) {
		require.NoError(s.t, err)
		for _, address := range someID.FindAllString(e.Text, -1) {
			update := regexp.MustCompile(`(?m)^history apply\.update \S* ` + regexp.QuoteMeta(address) + `\n`)
			want.told, got.told = update.ReplaceAllString(want.told, ""), update.ReplaceAllString(got.told, "")
		}
	}
	require.Equal(s.t, want.told, got.told, s.ended)
	require.LessOrEqual(s.t, len(s.forge.Statuses(s.git.heads["refs/heads/canary"])), 2, s.ended)
}
