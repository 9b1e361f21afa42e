package reconciler

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// Parts are what a reconciler works with. Open makes the real ones.
type Parts struct {
	Engine  *engineclient.Client
	Journal journal.Journal
	Remotes map[string]gitsource.Remote // by repository name
	Forges  map[string]forge.Forge      // by repository name; without an entry it has none
	Now     func() time.Time            // default time.Now
	Hooks   map[string]forge.Hook       // by repository name
	Getenv  func(string) string         // default os.Getenv
	Out     io.Writer                   // of notifications of kind stdout; default os.Stdout
	Logger  *slog.Logger
	Version string
	Traces  *sdktrace.TracerProvider // nil for none; Close ends it
}

// Reconciler follows repositories and makes an engine what they say.
type Reconciler struct {
	spans
	traces    *sdktrace.TracerProvider
	config    Config
	engine    *engineclient.Client
	ledger    *ledger
	now       func() time.Time
	log       *slog.Logger
	meters    *meters
	instance  string // of the journal: what endpoints are owned by
	version   string
	getenv    func(string) string
	followers []*follower
	live      *shared
	outbox    *notify.Outbox
	hookers   map[string]forge.Hook

	mu       sync.Mutex
	trees    map[string]gitsource.Snapshot // newest of each repository, for policies of others
	compiled map[string]ruleMemory         // by the policy's name
	plans    map[StackKey]*planned         // newest of each stack, for the HTTP door
	slots    sync.Mutex                    // one start at a time is counted and made
	forgot   time.Time                     // when old history was deleted last; of the deliverer
}

// New puts a reconciler together. Nothing is read or written yet.
func New(c Config, p Parts) (*Reconciler, error) {
	r := &Reconciler{
		config: c, engine: p.Engine, now: p.Now, log: p.Logger,
		trees: map[string]gitsource.Snapshot{}, compiled: map[string]ruleMemory{}, plans: map[StackKey]*planned{}, meters: newMeters(),
		version: p.Version, getenv: p.Getenv, hookers: p.Hooks,
	}
	if p.Traces != nil {
		r.traces, r.spans = p.Traces, spans{p.Traces.Tracer("sluice/reconciler")}
	}
	if r.getenv == nil {
		r.getenv = os.Getenv
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.live = newShared(p.Engine, r.now)
	r.live.read = r.keepProject
	host, _ := os.Hostname()
	r.ledger = &ledger{Journal: p.Journal, now: r.now, who: journal.Holder{ID: token(), Host: host, PID: os.Getpid(), Since: r.now()}}
	r.outbox = r.newOutbox(p.Out)
	slots := make(chan struct{}, cmp.Or(c.Limits.Fetches, 4))
	for _, rc := range c.Repositories {
		remote, ok := p.Remotes[rc.Name]
		if !ok {
			return nil, fmt.Errorf("repository %s has no remote", rc.Name)
		}
		f := &follower{Reconciler: r, config: rc, remote: fetching{remote, slots, map[stretch]gitsource.Log{}}, forge: r.forgeOf(rc.Name, p.Forges), wake: make(chan struct{}, 1), memory: map[string]*stackMemory{}, shown: map[string]*shownRollout{}}
		f.config.Stacks = dependenciesFirst(rc)
		f.log = r.log.With("repository", rc.Name)
		r.followers = append(r.followers, f)
	}
	return r, nil
}

// forgeOf is the forge of a repository; nil for none.
func (r *Reconciler) forgeOf(repository string, forges map[string]forge.Forge) forge.Forge {
	f := forges[repository]
	if f == nil || r.tracer == nil {
		return f
	}
	return tracedForge{f, r.spans, repository}
}

// dependenciesFirst are a repository's stacks, each after those of the same repository that it
// depends on. The configuration has no cycles.
func dependenciesFirst(c RepositoryConfig) []StackConfig {
	var out []StackConfig
	done := map[string]bool{}
	var add func(StackConfig)
	add = func(s StackConfig) {
		if done[s.Name] {
			return
		}
		done[s.Name] = true
		for _, k := range s.DependsOn {
			for _, other := range c.Stacks {
				if k.Repository == c.Name && k.Stack == other.Name {
					add(other)
				}
			}
		}
		out = append(out, s)
	}
	for _, s := range c.Stacks {
		add(s)
	}
	return out
}

// token is a name that nobody else has.
func token() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Begin takes the lease and the journal's instance name, and looks at what a process
// before this one has left open. *journal.Held when another process writes.
func (r *Reconciler) Begin(ctx context.Context) error {
	if err := r.ledger.take(ctx); err != nil {
		return err
	}
	key := journal.Key{Kind: kindInstance}
	name, err := read[string](ctx, r.ledger, key)
	if err != nil {
		return err
	}
	if name == "" {
		name = "reconciler-" + token()
		if err := r.ledger.write(ctx, journal.Batch{Put: []journal.Record{record(key, name)}}); err != nil {
			return err
		}
	}
	r.instance = cmp.Or(r.config.State.Instance, name)
	return r.recover(ctx)
}

// recover ends the intents that were left open. Each effect is looked for in the world
// before it is repeated (adoption by name and digest, comments by their marker), so an
// open intent is nothing but a sign that a process died here.
func (r *Reconciler) recover(ctx context.Context) error {
	open, err := r.ledger.Open(ctx)
	if err != nil {
		return err
	}
	var b journal.Batch
	for _, in := range open {
		r.log.Warn("an intent was left open; the world is looked at before anything is repeated", "verb", in.Verb, "address", in.Address, "intent", in.ID)
		b.End = append(b.End, journal.Outcome{Intent: in.ID, Result: "void", At: r.now()})
		b.Entries = append(b.Entries, journal.Entry{At: r.now(), Repository: in.Repository, Stack: in.Stack, Kind: kindRecovered, Text: fmt.Sprintf("%s %s was begun by a process that ended; the world is looked at again", in.Verb, in.Address)})
	}
	return r.ledger.write(ctx, b)
}

// End gives the lease back.
func (r *Reconciler) End(ctx context.Context) error { return r.ledger.giveBack(ctx) }

// share makes a repository's tree known to the policies of others.
func (r *Reconciler) shareTree(name string, tree gitsource.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trees[name] = tree
}

func (r *Reconciler) treeOf(name string) (gitsource.Snapshot, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.trees[name]
	return t, ok
}

// follower follows one repository. Its passes run one at a time, so its fields need no
// lock; other goroutines reach it by wake and the journal alone.
type follower struct {
	*Reconciler
	config RepositoryConfig
	remote gitsource.Remote
	forge  forge.Forge // nil for none
	log    *slog.Logger
	wake   chan struct{}

	// What was read last. It is lost with the process and read again.
	source   sourceRecord
	tree     *gitsource.Snapshot
	memory   map[string]*stackMemory
	pulls    pullMemory
	seen     healthRecord // guarded by the reconciler's lock
	gitErr   error        // of this pass: then nothing new is started
	judgedBy string       // the rules of this pass, see rulesKey
	shown    map[string]*shownRollout
	words    bool // what people have asked for could not be done in this pass
	hinted   bool // a webhook came; guarded by the reconciler's lock
}

func (f *follower) share(tree gitsource.Snapshot) { f.shareTree(f.config.Name, tree) }

// key names one of this repository's stacks.
func (f *follower) key(stack string) StackKey { return StackKey{f.config.Name, stack} }

// hasten makes the next pass come at once; asked twice it is one pass.
func (f *follower) hasten() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// pass reads, decides, acts and records once.
func (f *follower) pass(ctx context.Context) error {
	err := f.within(ctx, "pass", f.parts, ofRepository.String(f.config.Name))
	if errors.Is(err, errUnrecorded) { // no comment counts as heard that is not recorded
		f.pulls = pullMemory{}
	}
	return err
}

// parts are those of a pass, in their order. What fails in one does not stop the others:
// without Git what runs is still watched, without a forge still applied. Each has the
// deadline for itself, so that a host that hangs takes no other's time; what people have
// asked for waits for none of them. What the journal does not take ends the pass, since the
// records of its parts speak of each other.
func (f *follower) parts(ctx context.Context) error {
	errs := []error{f.ledger.endLeft(ctx), f.inTime(ctx, f.hearFirst)}
	gitErr := f.inTime(ctx, f.readGit)
	errs = append(errs, gitErr)
	f.noteGit(gitErr)
	f.gitErr, f.judgedBy = gitErr, f.rulesKey()
	if f.forge != nil {
		errs = append(errs, ofForge(f.inTime(ctx, func(ctx context.Context) error { return f.within(ctx, "pulls", f.lookAtPulls) })))
	}
	if err := errors.Join(errs...); errors.Is(err, errUnrecorded) {
		return err
	}
	errs = append(errs, f.inTime(ctx, f.eachStack))
	if err := errors.Join(errs...); f.forge == nil || errors.Is(err, errUnrecorded) {
		return err
	}
	return errors.Join(append(errs, ofForge(f.inTime(ctx, func(ctx context.Context) error {
		return f.within(ctx, "report", func(ctx context.Context) error { return errors.Join(f.reportPulls(ctx), f.reportRuns(ctx)) })
	})))...)
}

// inTime does one part of a pass within the deadline.
func (f *follower) inTime(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.config.Deadline)
	defer cancel()
	return do(ctx)
}

func (f *follower) readGit(ctx context.Context) error {
	if err := f.within(ctx, "observe", f.observe); err != nil {
		return err
	}
	return f.within(ctx, "read", f.desire)
}

// eachStack makes a pass over each stack, until the journal takes nothing more.
func (f *follower) eachStack(ctx context.Context) error {
	var errs []error
	for _, c := range f.config.Stacks {
		pass := func(ctx context.Context) error { return f.stack(ctx, c) }
		if err := f.within(ctx, "stack", pass, ofStack.String(c.Name)); err != nil {
			errs = append(errs, fmt.Errorf("stack %s: %w", f.key(c.Name), err))
		}
		if err := errors.Join(errs...); errors.Is(err, errUnrecorded) {
			return err
		}
	}
	return errors.Join(errs...)
}

// forgeFault is what failed of pull requests and reports. It is told, and it neither slows
// down the passes nor makes the process unready: anybody can open a pull request.
type forgeFault struct{ err error }

func (f *forgeFault) Error() string { return f.err.Error() }
func (f *forgeFault) Unwrap() error { return f.err }

// ofForge marks an error; one of the journal is none of the forge's.
func ofForge(err error) error {
	if err == nil || errors.Is(err, errUnrecorded) || errors.Is(err, ErrNotHolder) {
		return err
	}
	return &forgeFault{err}
}

// besidesForge is what of a pass's error is not the forge's.
func besidesForge(err error) error {
	switch e := err.(type) { //nolint:errorlint // the joined error is taken apart
	case *forgeFault:
		return nil
	case interface{ Unwrap() []error }:
		var rest []error
		for _, part := range e.Unwrap() {
			rest = append(rest, besidesForge(part))
		}
		return errors.Join(rest...)
	}
	return err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
