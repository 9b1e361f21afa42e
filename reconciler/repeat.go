package reconciler

import (
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// mostRepeats is how often the same change is made in a row.
const mostRepeats = 3

// inVain keeps the same change from being made again and again: something undoes it, or
// the engine does not keep it, and two that undo each other's work must not alternate.
func (p *stackPass) inVain(c planning.Change) Wait {
	r := p.remember(p.c.Name).repeats[c.Address]
	till := r.at.Add(6 * planAnew)
	if r.what != sameness(c) || r.n < mostRepeats || !p.now().Before(till) {
		return Wait{}
	}
	return Wait{For: ForPerson, Till: till, What: fmt.Sprintf("%s: the same change was made %d times and does not stay; something undoes it. Find out what, and push a new commit", c.Address, r.n)}
}

// readingsLag is how old what an engine tells may be.
const readingsLag = 10 * time.Second

// justStarted reports whether this process has started a rollout a moment ago.
func (p *stackPass) justStarted(c planning.Change) bool {
	r := p.remember(p.c.Name).repeats[c.Address]
	return c.Action == planning.Start && r.what == sameness(c) && p.now().Before(r.at.Add(readingsLag))
}

// countRepeat counts a change that was made.
func (p *stackPass) countRepeat(c planning.Change) {
	m := p.remember(p.c.Name)
	r := m.repeats[c.Address]
	if r.what != sameness(c) {
		r = repeat{what: sameness(c)}
	}
	r.n, r.at = r.n+1, p.now()
	m.repeats[c.Address] = r
}

// sameness is what makes two changes of a thing the same one.
func sameness(c planning.Change) string {
	what := fmt.Sprint(c.Action, " ", c.ID, " ", c.Digest)
	for _, f := range c.Fields {
		what += fmt.Sprintf(" %s=%s→%s", f.Path, f.Before, f.After)
	}
	return what
}
