package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// killGrace is how long Close still waits after it has sent SIGKILL.
const killGrace = 10 * time.Second

// Fleet is the driver of local processes.
type Fleet struct {
	fleet.Listeners
	cfg     Config
	id      string
	lock    *os.File
	records records
	logs    logs
	prober  prober

	mu      sync.Mutex
	roster  *fleet.Roster
	runners map[string]*runner
	ports   map[int]string    // port → replica that was given it
	configs map[string]string // deployment → hash of the config that new replicas start with
	closed  bool

	left     context.Context //nolint:containedctx // of the fleet, not of a call: ends when the fleet leaves its replicas to the next one
	leave    context.CancelFunc
	hurried  context.Context //nolint:containedctx // likewise: ends when drains and stops may take no more time
	hurry    context.CancelFunc
	routines sync.WaitGroup
}

var _ fleet.Fleet = (*Fleet)(nil)

// New takes the folder over and adopts the replicas that run from before. They
// are probed at once; Ensure claims them, Reconcile ends the rest.
func New(cfg Config) (*Fleet, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	f := &Fleet{
		cfg:     cfg,
		records: records{filepath.Join(cfg.Dir, "replicas")},
		logs:    logs{filepath.Join(cfg.Dir, "logs"), cfg.LogMaxBytes, cfg.LogFiles, cfg.LogsKept},
		prober:  newProber(),
		runners: make(map[string]*runner), ports: make(map[int]string), configs: make(map[string]string),
	}
	if f.roster, err = fleet.NewRoster(cfg.Pools, func() string { return randomID("rep_") }); err != nil {
		return nil, err
	}
	for _, dir := range []string{f.records.dir, f.logs.dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("process fleet: %w", err)
		}
	}
	if f.lock, err = lockDir(cfg.Dir); err != nil {
		return nil, fmt.Errorf("process fleet: %w", err)
	}
	f.left, f.leave = context.WithCancel(context.Background())
	f.hurried, f.hurry = context.WithCancel(context.Background())
	if f.id, err = fleetID(cfg.Dir); err == nil {
		err = f.adoptAll()
	}
	if err != nil {
		f.leave()
		f.hurry()
		return nil, errors.Join(fmt.Errorf("process fleet: %w", err), f.lock.Close())
	}
	return f, nil
}

// Ensure keeps the workload running.
func (f *Fleet) Ensure(_ context.Context, w rollout.Workload) error {
	if len(w.Config.Command) == 0 && !w.Bounds.Stopped() {
		return fmt.Errorf("config %q has no command, so the process fleet cannot run %s", w.Config.ID, w.Deployment)
	}
	return f.command(func() error {
		if err := f.roster.Ensure(w); err != nil {
			return err
		}
		f.noteOldConfigs(w)
		return nil
	})
}

// noteOldConfigs logs, once a change, which replicas serve on with an older
// config. They take the new one when they start again; an edit of a file does not
// touch what serves.
func (f *Fleet) noteOldConfigs(w rollout.Workload) {
	now := configHash(w)
	if f.configs[w.Deployment] == now {
		return
	}
	f.configs[w.Deployment] = now
	for id, r := range f.runners {
		if r.deployment == w.Deployment && r.config != "" && r.config != now {
			f.cfg.Logger.Info("a replica serves on with an older config until it starts again", "replica", id, "deployment", w.Deployment)
		}
	}
}

// SetDesired is the autoscaler's wish.
func (f *Fleet) SetDesired(_ context.Context, deployment string, n int) error {
	return f.command(func() error { return f.roster.SetDesired(deployment, n) })
}

// Remove ends the deployment.
func (f *Fleet) Remove(_ context.Context, deployment string) error {
	return f.command(func() error {
		f.roster.Remove(deployment)
		delete(f.configs, deployment)
		return nil
	})
}

// Observe tells what runs.
func (f *Fleet) Observe(_ context.Context, deployment string) (rollout.FleetStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return rollout.FleetStatus{}, fleet.ErrClosed
	}
	return f.roster.Status(deployment), nil
}

// Hardware lists the inventory.
func (f *Fleet) Hardware(context.Context) ([]rollout.Hardware, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fleet.ErrClosed
	}
	return f.roster.Hardware(), nil
}

// LogPath is the file that a replica writes to, there or not. Rotated parts have
// the same name with .1, .2 and so on.
func (f *Fleet) LogPath(replica string) string { return f.logs.path(filepath.Base(replica)) }

// Leave has Close leave the replicas, whatever the config says: they are another's now.
func (f *Fleet) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cfg.OnClose = LeaveReplicas
}

// Close ends or leaves the replicas, as the config says. With EndReplicas each is
// drained and stopped; when ctx ends first they are killed.
func (f *Fleet) Close(ctx context.Context) error {
	if f.cfg.OnClose == LeaveReplicas {
		f.leave()
	}
	first := f.shut()
	done := make(chan struct{})
	go func() { defer close(done); f.routines.Wait() }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("process fleet: replicas were killed before they were drained: %w", ctx.Err())
		f.hurry()
		select {
		case <-done:
		case <-time.After(killGrace):
			err = fmt.Errorf("process fleet: replicas still run after SIGKILL: %w", ctx.Err())
		}
	}
	f.leave()
	f.hurry()
	if first {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

// shut refuses further calls and, unless the replicas stay, wants none of them.
func (f *Fleet) shut() (first bool) {
	f.change(func(time.Time) {
		first = !f.closed
		f.closed = true
		if f.cfg.OnClose == LeaveReplicas {
			return
		}
		for _, name := range f.roster.Deployments() { // those that only wait for a place too, or they would get one now
			f.roster.Remove(name)
		}
	})
	return first
}

// command is a caller's change; refused once closed.
func (f *Fleet) command(do func() error) error {
	err := fleet.ErrClosed
	f.change(func(time.Time) {
		if !f.closed {
			err = do()
		}
	})
	return err
}

// change does one thing to the roster, tells the listeners what it changed, and
// then hands the orders that follow to the runners: who routes to a replica hears
// that it drains before its drain asks for the last request.
func (f *Fleet) change(do func(now time.Time)) {
	f.mu.Lock()
	now := time.Now()
	do(now)
	var after []func()
	for _, o := range f.roster.Plan(now) {
		after = append(after, f.assign(o))
	}
	changed := f.roster.TakeChanged()
	f.mu.Unlock()
	f.Notify(changed)
	for _, do := range after {
		do()
	}
}

// assign prepares an order under the lock and returns what carries it out.
func (f *Fleet) assign(o fleet.Order) func() {
	if o.Verb == fleet.Start {
		r := f.runner(o.Replica)
		return func() { go f.supervise(r, nil) }
	}
	r := f.runners[o.Replica.ID]
	return func() { r.order(o) }
}

// runner makes the keeper of a replica. Its goroutine is counted here, under the
// lock, so that Close waits for it.
func (f *Fleet) runner(rep rollout.Replica) *runner {
	r := &runner{f: f, id: rep.ID, deployment: rep.Deployment, ended: make(chan struct{})}
	f.runners[rep.ID] = r
	f.routines.Add(1)
	return r
}
