package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// stackMemory is what a follower keeps of a stack between passes. It only saves work:
// without it all is read and planned again.
type stackMemory struct {
	rest    string    // what everything looked like when there was nothing to do
	plan    *planned  // newest
	looks   string    // what everything looked like when it was made
	until   time.Time // when to plan anew although nothing looks new
	settled string    // commit of applied
	applied declaration.Set
	repeats map[declaration.Address]repeat
	loads   loads
}

// repeat counts how often the same change was made in a row.
type repeat struct {
	what string
	n    int
	at   time.Time
}

// planAnew is the longest that a stack at rest is taken for granted. What changes the
// endpoint's etag is noticed at once; what does not is noticed then.
const planAnew = 10 * time.Minute

// planAnew is how long this stack is taken for granted: some less than the longest, as its
// name decides, so that stacks which came to rest together are not planned together.
func (p *stackPass) planAnew() time.Duration {
	return planAnew - share(p.k.String(), planAnew/4)
}

func (f *follower) remember(stack string) *stackMemory {
	m := f.memory[stack]
	if m == nil {
		m = &stackMemory{repeats: map[declaration.Address]repeat{}}
		f.memory[stack] = m
	}
	return m
}

// forget makes the next look a whole one.
func (p *stackPass) forget() {
	m := p.remember(p.c.Name)
	m.rest, m.plan = "", nil
}

// atRest reports whether nothing can have changed since a pass that left nothing to do:
// same files, same endpoints by their etags, nobody's word, no clock that has run out. A
// commit that touches nothing of the stack is taken in, and is not planned.
func (p *stackPass) atRest(ctx context.Context) (bool, error) {
	m := p.remember(p.c.Name)
	if m.rest == "" || !p.quiet() || p.now().After(m.until) || !p.sameFiles() {
		return false, nil
	}
	if looks, err := p.looks(ctx); err != nil || looks != m.rest {
		return false, err
	}
	if p.upToDate() {
		return true, nil
	}
	err := p.arrive(ctx)
	return err == nil && p.quiet() && p.upToDate(), err
}

// quiet reports whether neither people nor a run ask for anything.
func (p *stackPass) quiet() bool {
	for _, r := range p.pulls.known {
		if r.awaits(p.k.Stack) {
			return false
		}
	}
	return len(p.runs) == 0 && len(p.s.Queue) == 0 && p.tree != nil &&
		!slices.ContainsFunc(p.asks, func(a askRecord) bool { return a.Ended.IsZero() })
}

// upToDate reports whether the newest commit is known to the stack.
func (p *stackPass) upToDate() bool { return p.s.Newest.ID == p.tree.Commit.ID }

// sameFiles reports whether the newest commit has the files of the one that is in step. A
// commit on the way to it may have had others, and is run where each of them is.
func (p *stackPass) sameFiles() bool {
	return p.upToDate() || p.config.Supersede != Every && folderOf(*p.tree, p.c).Digest == p.s.Files
}

// looks is how everything looks that a plan depends on.
func (p *stackPass) looks(ctx context.Context) (string, error) {
	besides, err := p.looksTo(ctx, p.s)
	lines := []string{p.s.Files, besides}
	for _, run := range p.runs {
		for _, r := range run.Rollouts {
			lines = append(lines, fmt.Sprint(r.ID, r.moment()))
		}
	}
	return strings.Join(lines, "\n"), err
}

// endpointIDs are the endpoints that a stack has.
func (s *stackRecord) endpointIDs() []string {
	var out []string
	for _, b := range s.Bound {
		if b.Address.Kind == declaration.EndpointKind {
			out = append(out, b.ID)
		}
	}
	return out
}

// settle notes a pass that has left nothing to do.
func (p *stackPass) settle(ctx context.Context) {
	if p.resting {
		return
	}
	m := p.remember(p.c.Name)
	m.rest = ""
	if p.plan == nil || !p.plan.done || !p.quiet() || !p.upToDate() || len(p.plan.waits) > 0 || p.plan.acted > 0 {
		return
	}
	if looks, err := p.looks(ctx); err == nil {
		m.rest, m.until = looks, p.now().Add(p.planAnew())
	}
}

// notePass keeps how a pass went.
func (f *follower) notePass(began time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen.Began, f.seen.Ended = began, f.now()
	f.seen.Passes++
	f.meters.seconds.WithLabelValues(f.config.Name).Observe(f.seen.Ended.Sub(began).Seconds())
	if err != nil && !errors.Is(err, context.Canceled) {
		f.log.Warn("a pass failed in part", "error", err, "failures", f.seen.Failures)
	}
	if err := besidesForge(err); err != nil {
		f.seen.Failures++
		f.seen.Error = render.Inert(err.Error())
		f.meters.passes.WithLabelValues(f.config.Name, "error").Inc()
		return
	}
	f.seen.Failures, f.seen.Error, f.seen.LastGood = 0, "", f.seen.Ended
	f.meters.passes.WithLabelValues(f.config.Name, "ok").Inc()
	f.meters.lastGood.WithLabelValues(f.config.Name).Set(float64(f.seen.Ended.Unix()))
}

// noteStack keeps what is under way of a stack, for the pace of the passes and the
// metrics.
func (f *follower) noteStack(p *stackPass) {
	f.meters.show(p.k, p.s.Phase)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen.UnderWay == nil {
		f.seen.UnderWay, f.seen.Parked = map[string]int{}, map[string]time.Time{}
	}
	f.seen.UnderWay[p.k.Stack] = p.s.UnderWay
	delete(f.seen.Parked, p.k.Stack)
	if p.s.Phase == Parked {
		f.seen.Parked[p.k.Stack] = p.s.Since
	}
	all, longest := 0, 0.0
	for _, n := range f.seen.UnderWay {
		all += n
	}
	for _, since := range f.seen.Parked {
		longest = max(longest, f.now().Sub(since).Seconds())
	}
	f.meters.underWay.WithLabelValues(f.config.Name).Set(float64(all))
	f.meters.parkedFor.WithLabelValues(f.config.Name).Set(longest)
}

// health is how passes go, for other goroutines.
func (f *follower) health() healthRecord {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

func (f *follower) noteGit(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen.GitError = ""
	if err != nil {
		f.seen.GitError = render.Inert(err.Error())
	}
}

func (f *follower) noteForge(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen.Forge = ""
	var limited *forge.Limited
	if errors.As(err, &limited) && limited.Until.After(f.pulls.next) {
		f.pulls.next = limited.Until
	}
	if err != nil {
		f.seen.Forge = render.Inert(err.Error())
	}
	return err
}

// inert makes text of others harmless.
func inert(s string) string { return render.Inert(s) }

func joined(words []string) string { return strings.Join(words, ", ") }

// clip cuts a text at a number of characters.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most && most > 1 {
		return string(r[:most-1]) + "…"
	}
	return s
}

// redacted is an address without credentials.
func redacted(url string) string { return gitsource.Redacted(url) }
