package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Config is what an engine is made of. Store, Fleet, Router and Meter are needed.
type Config struct {
	Store   Store
	Fleet   Fleet
	Router  Router
	Meter   Meter
	Billing Entitlement // nil: nobody is asked
	Timings rollout.Timings
	Serving []rollout.ServingConfig // what may run
	Project rollout.Project
	Now     func() time.Time           // default time.Now
	NewID   func(prefix string) string // a name never given before; default 80 random bits
	Decide  Decide                     // default rollout.Decide; a rehearsal puts wrong ones in its place, to prove that it notices
	Logger  *slog.Logger               // default discards
	Workers int                        // rollouts decided at once; default 4
	Poll    time.Duration              // longest time between two looks at a working rollout; default 5 s. Beyond 400 rollouts a second it grows, see Engine.Workload
}

// Decide says what follows from a rollout and what was observed at an instant.
type Decide func(r rollout.Rollout, o rollout.Observed, now time.Time) rollout.Decision

// Engine carries out commands and runs rollouts.
type Engine struct {
	Config
	serving   map[string]rollout.ServingConfig
	runner    *runner
	routes    *routes
	returning returning
	feed      feed
	fence     fence
}

// New makes an engine. Run must be called for anything to move.
func New(c Config) *Engine {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = randomID
	}
	if c.Decide == nil {
		c.Decide = rollout.Decide
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Workers <= 0 {
		c.Workers = 4
	}
	if c.Poll <= 0 {
		c.Poll = 5 * time.Second
	}
	e := &Engine{Config: c, serving: make(map[string]rollout.ServingConfig, len(c.Serving)), feed: feed{watching: map[string]map[chan struct{}]struct{}{}}}
	e.Store = announcing{Store: fencedStore{c.Store, &e.fence}, feed: &e.feed}
	for _, s := range c.Serving {
		e.serving[s.ID] = s
	}
	e.routes = newRoutes(e)
	e.runner = newRunner(e)
	return e
}

// Load brings the world to what is stored: every deployment is ensured and every
// route applied. It must end before the data plane takes requests. A deployment that
// cannot be ensured, or a route that is refused, is told in the log and tried again
// by Run: one that is broken must not keep the others from serving.
func (e *Engine) Load(ctx context.Context) error {
	if err := e.routes.floor(ctx); err != nil {
		return err
	}
	deployments, err := e.Store.Deployments(ctx, "")
	if err != nil {
		return fmt.Errorf("load deployments: %w", err)
	}
	e.returning.begin(e.Now(), deployments)
	for _, d := range deployments {
		if err := e.ensure(ctx, d); err != nil {
			e.Logger.Error("load a deployment", "deployment", d.ID, "error", err)
			e.routes.ensureLater(d.ID)
		}
	}
	endpoints, err := e.Store.Endpoints(ctx)
	if err != nil {
		return fmt.Errorf("load endpoints: %w", err)
	}
	for _, ep := range endpoints {
		if err := e.routes.apply(ctx, ep.ID); err != nil {
			e.Logger.Error("load a route", "endpoint", ep.ID, "error", err)
		}
	}
	return nil
}

// Run works until ctx ends: it takes up every open rollout where it was, follows
// the fleet and decides. It returns once all of its work has stopped, with an error
// that wraps rollout.ErrFenced when another engine has taken the store over.
func (e *Engine) Run(ctx context.Context) error {
	ctx, stop := e.fence.watch(ctx)
	defer stop()
	cancel := e.Fleet.Subscribe(e.routes.changed)
	defer cancel()
	if err := e.takeUp(ctx); err != nil {
		if ctx.Err() != nil {
			return e.fence.gone() // nil when it was told to end before it began
		}
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { e.routes.run(ctx) })
	wg.Go(func() { e.runner.run(ctx) })
	wg.Wait()
	return e.fence.gone()
}

// takeUp queues everything that stands to be looked at.
func (e *Engine) takeUp(ctx context.Context) error {
	// What changed between Load and the subscription was told to nobody.
	deployments, err := e.Store.Deployments(ctx, "")
	if err != nil {
		return fmt.Errorf("load deployments: %w", err)
	}
	for _, d := range deployments {
		e.routes.missed(d.ID)
	}
	open, err := e.Store.OpenRollouts(ctx)
	if err != nil {
		return fmt.Errorf("load open rollouts: %w", err)
	}
	e.runner.takeUp(open)
	return nil
}

// update reads, changes and commits until no other writer came between. A caller
// that names an etag is refused by change instead.
func (e *Engine) update(ctx context.Context, change func() (rollout.Change, error)) error {
	const tries = 16
	for range tries {
		c, err := change()
		if err != nil || c.Empty() {
			return err
		}
		err = e.Store.Commit(ctx, c)
		if !errors.Is(err, rollout.ErrConflict) {
			return err
		}
	}
	return refuse(Transient, "too many writers at once; try again")
}

func randomID(prefix string) string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + "_" + hex.EncodeToString(b[:])
}

// checkETag refuses a caller whose etag is not the current version's.
func checkETag(etag, kind, id string, version int64) error {
	if etag == "" || etag == rollout.ETag(version) {
		return nil
	}
	return refuse(Stale, "%s %s was changed since you read it (etag %s is not current); read it again and repeat", kind, id, strings.TrimSpace(etag))
}
