package rehearsal

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

// storePort stands between the engine and its store: commits fail, or are kept while
// their answer is lost, and the world sees what is written.
type storePort struct {
	*memo
	w     *World
	down  bool
	fails int // so many commits from now on are not kept
	loses int // so many are kept, and nobody hears
}

// Commit writes a change.
func (s *storePort) Commit(ctx context.Context, c rollout.Change) error {
	return s.w.power.through("commit", func() error { //nolint:contextcheck // the simulated fleet's drains have a life of their own
		if s.down {
			return errDown
		}
		if s.fails > 0 {
			s.fails--
			s.w.watch.lastFault = s.w.now
			return errDown
		}
		if err := s.memo.Commit(ctx, c); err != nil {
			return err
		}
		s.w.committed(c)
		if s.loses > 0 {
			s.loses--
			s.w.watch.lastFault = s.w.now
			return errDown
		}
		return nil
	})
}

func (s *storePort) dead() error {
	if s.w.power.dead || s.down {
		return errDown
	}
	return nil
}

// Rollout reads one rollout.
func (s *storePort) Rollout(ctx context.Context, id string) (rollout.Rollout, error) {
	if err := s.dead(); err != nil {
		return rollout.Rollout{}, err
	}
	return s.memo.Rollout(ctx, id)
}

// Endpoint reads one endpoint.
func (s *storePort) Endpoint(ctx context.Context, id string) (rollout.Endpoint, error) {
	if err := s.dead(); err != nil {
		return rollout.Endpoint{}, err
	}
	return s.memo.Endpoint(ctx, id)
}

// Endpoints reads all endpoints.
func (s *storePort) Endpoints(ctx context.Context) ([]rollout.Endpoint, error) {
	if err := s.dead(); err != nil {
		return nil, err
	}
	return s.memo.Endpoints(ctx)
}

// Deployment reads one deployment.
func (s *storePort) Deployment(ctx context.Context, id string) (rollout.Deployment, error) {
	if err := s.dead(); err != nil {
		return rollout.Deployment{}, err
	}
	return s.memo.Deployment(ctx, id)
}

// Deployments reads an endpoint's deployments.
func (s *storePort) Deployments(ctx context.Context, endpoint string) ([]rollout.Deployment, error) {
	if err := s.dead(); err != nil {
		return nil, err
	}
	return s.memo.Deployments(ctx, endpoint)
}

// OpenRollouts reads every rollout that is not over.
func (s *storePort) OpenRollouts(ctx context.Context) ([]rollout.Rollout, error) {
	if err := s.dead(); err != nil {
		return nil, err
	}
	return s.memo.OpenRollouts(ctx)
}

// memo remembers the rows that were read or written: a rollout that waits is looked at
// far more often than it is written. With Decoded it remembers nothing, and every read is
// SQLite's and decodes its row.
type memo struct {
	*store.SQLite
	reads       Reads
	rollouts    map[string]rollout.Rollout
	endpoints   map[string]rollout.Endpoint
	deployments map[string]rollout.Deployment
	lists       map[string][]rollout.Deployment
	taken       bool // over by another engine
}

// Reads says where a world's rows come from.
type Reads int

// The two values of Reads.
const (
	Remembered Reads = iota // decoded once, and then kept up with what is written
	Decoded                 // by SQLite each time
)

func newMemo(disk *store.SQLite, reads Reads) *memo {
	m := &memo{SQLite: disk, reads: reads}
	m.forget()
	return m
}

func (m *memo) forget() {
	m.rollouts, m.endpoints = map[string]rollout.Rollout{}, map[string]rollout.Endpoint{}
	m.deployments, m.lists = map[string]rollout.Deployment{}, map[string][]rollout.Deployment{}
}

// Commit writes a change. What was read of the changed rows is replaced by what was
// written; a change that was not taken is forgotten with everything else.
func (m *memo) Commit(ctx context.Context, c rollout.Change) error {
	if err := m.SQLite.Commit(ctx, c); err != nil || len(c.Delete) > 0 {
		m.forget()
		return err
	}
	for _, r := range c.Rollouts {
		r.Version++
		m.rollouts[r.ID] = r
	}
	for _, e := range c.Endpoints {
		e.Version++
		m.endpoints[e.ID] = e
	}
	for _, d := range c.Deployments {
		d.Version++
		m.deployments[d.ID] = d
		clear(m.lists)
	}
	return nil
}

func remembered[T any](m *memo, in map[string]T, key string, read func() (T, error)) (T, error) {
	if v, ok := in[key]; ok && m.reads == Remembered {
		return v, nil
	}
	v, err := read()
	if err == nil {
		in[key] = v
	}
	return v, err
}

// Rollout reads one rollout.
func (m *memo) Rollout(ctx context.Context, id string) (rollout.Rollout, error) {
	return remembered(m, m.rollouts, id, func() (rollout.Rollout, error) { return m.SQLite.Rollout(ctx, id) })
}

// Endpoint reads one endpoint.
func (m *memo) Endpoint(ctx context.Context, id string) (rollout.Endpoint, error) {
	return remembered(m, m.endpoints, id, func() (rollout.Endpoint, error) { return m.SQLite.Endpoint(ctx, id) })
}

// Deployment reads one deployment.
func (m *memo) Deployment(ctx context.Context, id string) (rollout.Deployment, error) {
	return remembered(m, m.deployments, id, func() (rollout.Deployment, error) { return m.SQLite.Deployment(ctx, id) })
}

// Deployments reads an endpoint's deployments.
func (m *memo) Deployments(ctx context.Context, endpoint string) ([]rollout.Deployment, error) {
	return remembered(m, m.lists, endpoint, func() ([]rollout.Deployment, error) { return m.SQLite.Deployments(ctx, endpoint) })
}

// committed puts what was written into the transcript and before the watch.
func (w *World) committed(c rollout.Change) {
	for _, e := range c.Events {
		if !strings.HasPrefix(string(e.Type), "rollout.") && e.Type != rollout.EventBreakGlass {
			continue
		}
		text := fmt.Sprintf("%-24s %s", e.Type, e.Message)
		if e.Reason != "" && !strings.Contains(text, e.Reason) {
			text += " (" + e.Reason + ")"
		}
		w.say("event", "%s", text)
	}
	for _, r := range c.Rollouts {
		if old := w.record; old.ID == r.ID && old.State != r.State {
			w.say("state", "%s → %s", old.State, r.State)
		}
	}
	w.watch.committed(c)
	for _, r := range c.Rollouts {
		r.Version++
		w.record = r
		w.pull(r)
	}
	for _, d := range c.Delete {
		if d.Kind == rollout.KindRollout && d.ID == w.record.ID {
			w.record = rollout.Rollout{}
			w.deleted = true
		}
	}
	for _, e := range c.Endpoints {
		e.Version++
		if w.endpoint.ID != "" && w.endpoint.ID != e.ID {
			continue // it only serves
		}
		w.endpoint = e
	}
	for _, d := range c.Deployments {
		d.Version++
		w.deployments[d.ID] = d
	}
}
