package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// listFor is how long one list of the endpoints serves all passes.
const listFor = 2 * time.Second

// shared is a Live for all followers: the endpoints are listed once for the passes of one
// moment, and again after something was written.
type shared struct {
	now  func() time.Time
	read func(context.Context) error // judges each reading; nil for nobody

	mu     sync.Mutex
	live   *Live
	listed time.Time
	stale  bool
}

func newShared(c *engineclient.Client, now func() time.Time) *shared {
	l := NewLive(c)
	l.now = now
	return &shared{now: now, live: l, stale: true}
}

// refresh lists the endpoints when the list is not of this moment. The caller has the lock.
func (s *shared) refresh(ctx context.Context) error {
	if now := s.now(); !s.stale && now.Sub(s.listed) < listFor && !now.Before(s.listed) {
		return nil
	}
	if err := s.live.Refresh(ctx); err != nil {
		return err
	}
	if s.read != nil {
		if err := s.read(ctx); err != nil {
			return err
		}
	}
	s.listed, s.stale = s.now(), false
	return nil
}

// plan plans a folder against what stands.
func (s *shared) plan(ctx context.Context, load Load, options declaration.Options, past Past) (planning.Changes, declaration.Diagnostics, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return planning.Changes{}, nil, err
	}
	return PlanFolder(ctx, s.live, load, options, past)
}

// ours reports whether the engine is Sluice's own.
func (s *shared) ours() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live.who.Sluice != nil
}

// slug is the project's, as of the newest list; empty before the first.
func (s *shared) slug() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live.who.ProjectSlug
}

// forget makes the next reading a whole one, after a write.
func (s *shared) forget(endpoints ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
	for _, id := range endpoints {
		s.live.Forget(id)
	}
}

// looks is how some endpoints look in the list: their etags, and their deployments as far
// as the list shows them.
func (s *shared) looks(ctx context.Context, endpoints []string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return "", err
	}
	var out strings.Builder
	for _, e := range s.live.Endpoints() {
		if !slices.Contains(endpoints, e.ID) {
			continue
		}
		out.WriteString(e.ID + " " + e.ETag + " " + e.ActiveRolloutID)
		for _, d := range e.Deployments {
			_, _ = fmt.Fprintf(&out, " %s %s %d %s", d.ID, d.State, d.ReadyReplicas, bounds(d.Autoscaling))
		}
		out.WriteString("\n")
	}
	return out.String(), nil
}

// named are the names of some endpoints, as of the newest list.
func (s *shared) named(ctx context.Context, endpoints []string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	var out []string
	for _, e := range s.live.Endpoints() {
		if slices.Contains(endpoints, e.ID) {
			out = append(out, planning.BareName(e.Name))
		}
	}
	return out, nil
}

// bounds are a deployment's limits as a text to compare.
func bounds(a api.Autoscaling) string {
	text := ""
	for _, n := range []*int{a.MinReplicas, a.MaxReplicas} {
		if n == nil {
			text += "-"
			continue
		}
		text += fmt.Sprint(*n) + "."
	}
	return text
}
