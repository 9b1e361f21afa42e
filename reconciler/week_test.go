package reconciler

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal/journaltest"
)

var (
	weekSeed = flag.Uint64("week.seed", 1, "the first seed of a week in virtual time")
	weekFor  = flag.Duration("week.for", 0, "play whole weeks, one seed after the other, for this long")
	weekPace = flag.Duration("week.pace", 0, "the mean pause between two passes; 0 for 40m, or 20m with -week.for")
	weekOf   = flag.Int("week.repositories", 0, "how many repositories of four endpoints there are; 0 for 6, or 50 with -week.for")
)

// weekSize says how much happens.
type weekSize struct {
	repositories int // of four endpoints each
	long         time.Duration
	pace         time.Duration // mean pause between two passes
	acts         int           // of people between two passes, at most
}

var (
	wholeWeek  = weekSize{repositories: 50, long: 7 * 24 * time.Hour, pace: 20 * time.Minute, acts: 18}
	quickWeek  = weekSize{repositories: 6, long: 7 * 24 * time.Hour, pace: 40 * time.Minute, acts: 5}
	shortStint = weekSize{repositories: 5, long: 24 * time.Hour, pace: 15 * time.Minute, acts: 4}
)

// week is a world of many repositories and endpoints in which everything happens that a
// seed draws. All of it is in one goroutine on one virtual clock, so that a seed plays
// the same twice.
type week struct {
	*stage
	size     weekSize
	seed     uint64
	draw     *rand.Rand
	repos    []*weekRepo
	watched  *watch
	process  *process   // that works
	standby  *process   // nil while there is none
	frozen   []*process // stand still with a lease that has run out
	wrong    wrongness
	ill      illness
	boss     *engineclient.Client // a person's at the engine
	died     int                  // processes
	trace    []string
	mending  bool // no more faults
	unmended bool // it ends as it is
	n        int  // asks at the HTTP door
}

// process is one process of the reconciler, with a client of its own.
type process struct {
	w *week
	n int
	r *Reconciler
}

// wrongness makes the reconciler wrong in one way, to prove that the watch notices.
type wrongness struct {
	unseen  func(*week, api.Rollout) bool             // it does not see some rollouts in lists
	loses   func(*http.Request) bool                  // which answers never reach it, which alone is no fault of its own
	config  func(*Config)                             // what it is told
	between func(w *week, r *Reconciler)              // is called before each pass
	journal func(*journaltest.Memory) journal.Journal // what it takes for the journal
}

// illness is what is out of order at the moment.
type illness struct {
	engine  bool // calls are refused
	lose    int  // answers to writes that get lost
	deadAt  int  // commits until the process dies; 0 for never
	frozeAt int  // calls until the process stands still for a while; 0 for never
}

// loses reports whether the answer to a call gets lost.
func (w *week) loses(req *http.Request) bool {
	if req.Method == http.MethodGet || w.ill.lose == 0 {
		return w.wrong.loses != nil && w.wrong.loses(req)
	}
	w.ill.lose--
	return true
}

// errDeath is the panic of a process that dies.
var errDeath = errors.New("the process dies here")

// RoundTrip carries a process's calls to the engine, and lets the watch see them.
func (p *process) RoundTrip(req *http.Request) (*http.Response, error) {
	w := p.w
	if w.ill.frozeAt > 0 && req.Method == http.MethodGet {
		if w.ill.frozeAt--; w.ill.frozeAt == 0 {
			w.freeze()
		}
	}
	if w.ill.engine {
		return nil, errors.New("connection refused")
	}
	res, err := w.watched.carry(p, req)
	if err == nil && w.loses(req) {
		return nil, errors.New("connection reset")
	}
	return res, err
}

// start makes a process, which does not hold the lease yet.
func (w *week) start() *process {
	w.t.Helper()
	w.died++
	p := &process{w: w, n: w.died}
	remotes := map[string]gitsource.Remote{}
	for name, m := range w.remotes {
		remotes[name] = m
	}
	var j journal.Journal = w.journal
	if w.wrong.journal != nil {
		j = w.wrong.journal(w.journal)
	}
	config := w.config
	if w.wrong.config != nil {
		w.wrong.config(&config)
	}
	r, err := New(config, Parts{Engine: w.clientOver(p, w.key), Journal: j, Remotes: remotes, Forges: w.forges, Now: func() time.Time { return w.now }, Out: w.watched})
	require.NoError(w.t, err)
	p.r = r
	return p
}

// freeze lets the working process stand still until its lease has run out, and another
// one begin.
func (w *week) freeze() {
	if w.standby == nil {
		return
	}
	w.now = w.now.Add(leaseFor + time.Second)
	old := w.process
	if !w.takeOver() {
		return
	}
	w.frozen = append(w.frozen, old)
	w.log("process %d stands still in mid-pass, %d takes over", old.n, w.process.n)
	w.once(w.process)
}

// takeOver lets the process that stands by work, once the lease is free.
func (w *week) takeOver() bool {
	p := w.standby
	if err := p.r.Begin(w.t.Context()); err != nil {
		return false
	}
	w.process, w.standby, w.r = p, nil, p.r
	return true
}

// ensure has a process working: a new one where the last has died, as soon as the lease
// is free.
func (w *week) ensure() {
	w.t.Helper()
	if w.process != nil && w.process.r.ledger.renew(w.t.Context()) == nil {
		return
	}
	if w.standby == nil {
		w.standby = w.start()
	}
	for range 10 {
		if w.takeOver() {
			w.log("process %d works", w.process.n)
			return
		}
		w.advance(10 * time.Second)
	}
	w.fail("no process gets the lease although nobody works")
}

// once makes one pass of everything; false when the process died in it.
func (w *week) once(p *process) (alive bool) {
	defer func() {
		if e := recover(); e != nil {
			if err, ok := e.(error); !ok || !errors.Is(err, errDeath) {
				panic(e)
			}
			w.watched.deaths++
			w.log("process %d dies", p.n)
			if w.process == p {
				w.process = nil
			}
		}
	}()
	if w.wrong.between != nil {
		w.wrong.between(w, p.r)
	}
	err := p.r.Once(w.t.Context())
	_ = p.r.forgetOld(w.t.Context())
	var fenced *journal.Fenced
	if errors.As(err, &fenced) && w.process == p {
		w.process = nil
	}
	if err != nil && w.mending {
		w.log("a pass of process %d: %v", p.n, err)
	}
	return true
}

// newWeek sets the world up; nothing has happened yet.
func newWeek(t *testing.T, seed uint64, size weekSize, wrong wrongness) *week {
	t.Helper()
	w := &week{stage: newStage(t), size: size, seed: seed, draw: rand.New(rand.NewPCG(seed, 7)), wrong: wrong} //nolint:gosec // a drawn script
	w.watched = newWatch(w)
	for i := range size.repositories {
		w.repos = append(w.repos, w.newRepo(i))
	}
	// Every night a third of the repositories is frozen, and all of them on Saturday.
	var some []StackKey
	for i, r := range w.repos {
		if i%3 == 0 {
			some = append(some, StackKey{Repository: r.name})
		}
	}
	w.config.Freezes = []Freeze{{Name: "night", Stacks: some, Cron: "0 22 * * *", For: 8 * time.Hour}, {Name: "saturday", Cron: "0 0 * * 6", For: 12 * time.Hour}}
	w.config.Limits.Rollouts = max(3, size.repositories)
	w.config.Notify = []NotifyConfig{{Name: "log", Kind: Stdout, Remind: 4 * time.Hour}, {Name: "parks", Kind: Stdout, Events: []string{"rollout.*"}}}
	w.config.State.Keep = 2 * 24 * time.Hour
	w.boss = w.person("carla")
	w.journal.Hook(func(b journaltest.Boundary) error {
		if w.ill.deadAt > 0 && b.Side == journaltest.After && !delivery(b.Batch) {
			if w.ill.deadAt--; w.ill.deadAt == 0 {
				panic(errDeath)
			}
		}
		return nil
	})
	return w
}

// delivery reports whether a commit is one of the outbox, which sends to its places at
// once: the order of those is no part of a script.
func delivery(b journal.Batch) bool {
	return len(b.Begin)+len(b.End)+len(b.Entries) == 0 && !slices.ContainsFunc(b.Put, func(r journal.Record) bool { return !strings.HasPrefix(r.Key.Kind, "notify") })
}

// newRepo is a repository of four endpoints: in one stack or in four, with and without a
// forge, each way of the configuration among them.
func (w *week) newRepo(i int) *weekRepo {
	r := &weekRepo{w: w, name: fmt.Sprintf("r%02d", i), specs: map[string][]spec{}}
	for n := range 4 {
		r.houses = append(r.houses, &weekHouse{repo: r, n: n, name: fmt.Sprintf("e%02d-%d", i, n), stack: "prod"})
		if i%2 == 0 {
			r.houses[n].stack = fmt.Sprintf("s%d", n)
		}
	}
	first := make([]spec, 4)
	for n := range first {
		first[n] = spec{file: fmt.Sprintf("h%d.tf", n), most: 2, from: "a", to: "b"}
	}
	r.git = w.follow(r.name, nil)
	r.commit("first", first)
	c := w.repository(r.name)
	c.Interval = time.Minute
	c.Stacks = nil
	for _, s := range r.stacks() {
		c.Stacks = append(c.Stacks, StackConfig{Name: s, Folder: s})
	}
	if i%4 == 2 { // the last stack waits for the first
		c.Stacks[3].DependsOn = []StackKey{{Repository: r.name, Stack: "s0"}}
	}
	if i%3 == 1 {
		c.Supersede = Every
	}
	if i%5 < 2 {
		c.Drift = CorrectDrift
	}
	if i%5 == 3 {
		c.Prune = PruneConfig{Mode: PruneOn, MostShrink: 40}
	}
	if i%2 == 0 || i%5 == 1 {
		r.forge = w.forgeOf(r.name)
	}
	if i%10 == 6 {
		w.repository(r.name).Approval = ApproveByDigest
	}
	return r
}

// play lets the week go by and then mends everything; it returns what must never be.
func (w *week) play() []string {
	w.t.Helper()
	end := w.now.Add(w.size.long)
	w.ensure()
	for w.now.Before(end) && len(w.watched.seen) == 0 {
		w.happen()
		w.tick()
		w.advance(time.Duration(float64(w.size.pace) * (0.2 + 1.6*w.draw.Float64())))
	}
	if len(w.watched.seen) == 0 && !w.unmended {
		w.mend()
	}
	return w.watched.seen
}

// tick is one pass of everything that works or believes to.
func (w *week) tick() {
	w.t.Helper()
	w.ensure()
	w.drawIllness()
	if w.chance(0.05) && w.standby == nil {
		w.standby = w.start()
	}
	if p := w.process; w.once(p) && w.standby != nil && w.process == p {
		before := w.process
		if err := w.standby.r.Begin(w.t.Context()); err == nil {
			w.fail("process %d took the lease that process %d holds", w.standby.n, before.n)
		}
	}
	for _, old := range w.frozen { // they go on, and must notice
		w.once(old)
	}
	w.frozen = nil
	w.ill = illness{}
	w.watched.pass()
}

// mend ends all faults; people decide what waits for them. Everything must come to rest.
func (w *week) mend() {
	w.t.Helper()
	w.mending = true
	w.heal()
	var rest []string
	for until := w.now.Add(4 * 24 * time.Hour); w.now.Before(until) && len(w.watched.seen) == 0; {
		w.tick()
		if rest = w.watched.restless(); len(rest) == 0 {
			w.watched.atTheEnd()
			return
		}
		w.decide()
		w.advance(20 * time.Minute)
	}
	for _, line := range rest {
		w.fail("it does not come to rest: %s", line)
	}
}

func (w *week) chance(p float64) bool { return w.draw.Float64() < p }

// log keeps what happened, for a seed that fails.
func (w *week) log(format string, args ...any) {
	w.trace = append(w.trace, w.now.Format("Mon 15:04:05 ")+fmt.Sprintf(format, args...))
}

func (w *week) fail(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.log("WRONG: %s", line)
	w.watched.seen = append(w.watched.seen, line)
}

// report says how to play a week again that went wrong.
func (w *week) report(seen []string) {
	w.t.Helper()
	w.t.Errorf("seed %d: %s\n(go test ./reconciler -run 'TestAWeek$' -args -week.seed=%d -week.repositories=%d -week.pace=%s plays it again)\n", w.seed, joined(seen[:min(5, len(seen))]), w.seed, w.size.repositories, w.size.pace)
	for _, line := range w.trace[max(0, len(w.trace)-60):] {
		w.t.Log(line)
	}
}

// The week: two hundred endpoints in fifty repositories: whatever people, Git, the forge
// and the machines do, what must never be is never seen, and at its end all is at rest.
func TestAWeek(t *testing.T) {
	if underRace != "" {
		t.Skip(underRace)
	}
	began := time.Now()
	size := quickWeek
	if *weekFor > 0 {
		size = wholeWeek
	}
	if *weekOf > 0 {
		size.repositories = *weekOf
	}
	if *weekPace > 0 {
		size.pace = *weekPace
	}
	for seed := *weekSeed; ; seed++ {
		w := newWeek(t, seed, size, wrongness{})
		if seen := w.play(); len(seen) > 0 {
			w.report(seen)
			return
		}
		t.Logf("seed %d: %s", seed, w.watched.summary())
		if time.Since(began) > *weekFor {
			return
		}
	}
}

// A seed plays the same twice: that is what makes a failure of one worth something.
func TestASeedPlaysTheSameTwice(t *testing.T) {
	if underRace != "" {
		t.Skip(underRace)
	}
	one, two := newWeek(t, *weekSeed, shortStint, wrongness{}), newWeek(t, *weekSeed, shortStint, wrongness{})
	require.Equal(t, one.play(), two.play())
	require.Equal(t, one.trace, two.trace)
	require.Equal(t, one.calls, two.calls)
	require.Equal(t, one.now, two.now)
	require.NotEmpty(t, one.trace)
}
