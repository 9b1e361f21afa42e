package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// mostSweeps bounds how often a pass plans anew because it has changed something. Three
// are enough for endpoints, deployments, and a rollout that is made and started.
const mostSweeps = 8

// apply makes the plan true, as far as nothing holds it: it sweeps over the changes in
// their order and plans anew after each sweep that has changed something, so that every
// change is made of what stands then. It never waits for a rollout.
func (p *stackPass) apply(ctx context.Context) error {
	for range mostSweeps {
		if !p.plan.ok() {
			return nil
		}
		p.takeInAll()
		p.noteDrift()
		todo := p.todo()
		run := p.current()
		if run == nil && len(todo) == 0 {
			p.plan.waits = p.foreign()
			p.plan.done = len(p.plan.waits) == 0
			return nil
		}
		if run == nil {
			var err error
			if run, err = p.mending(ctx); err != nil {
				return err
			}
		}
		if !run.Acted.IsZero() && !p.asApproved(run, todo) {
			run.Acted = time.Time{} // it is another plan than the one that was approved
		}
		if run.Acted.IsZero() {
			run.Digest = p.plan.digest
			p.allow(run, todo)
		}
		if len(todo) == 0 {
			p.plan.waits = append(p.foreign(), p.starting(run)...)
			p.plan.done = len(p.plan.waits) == 0
			return nil
		}
		if p.plan.waits = blocked(todo); len(p.plan.waits) == len(todo) { // there is nothing to approve
			return nil
		}
		holds, err := p.holds(ctx, run)
		if err != nil {
			return err
		}
		if !run.Acted.IsZero() { // its approval was given, and it has changed what stands since
			holds = slices.DeleteFunc(holds, func(w Wait) bool { return w.For == ForApproval })
		}
		if p.plan.waits = holds; len(holds) > 0 {
			return nil
		}
		if p.plan.known { // what is acted on is what stands now
			p.forget()
			if err := p.makePlan(ctx); err != nil {
				return err
			}
			continue
		}
		made, err := p.sweep(ctx, run, todo)
		if err != nil || made == 0 {
			return err
		}
		acted, waits := p.plan.acted, p.plan.waits
		p.live.forget(p.endpointIDs()...)
		p.forget()
		if err := p.makePlan(ctx); err != nil {
			return err
		}
		p.plan.acted, p.plan.waits = acted, waits
		p.allow(run, nil)
	}
	p.hasten()
	return nil
}

// allow notes what the plan that is about to be applied changes, and the splits as they
// are now: before the first change, and as each of this run's own changes leaves them.
func (p *stackPass) allow(run *runRecord, todo []planning.Change) {
	if todo != nil {
		run.Allowed = nil
		for _, c := range todo {
			run.Allowed = append(run.Allowed, c.Address.String())
		}
	}
	run.Splits = map[string]string{}
	for _, e := range p.plan.changes.Standing.Endpoints {
		run.Splits[e.ID] = splitText(e.TrafficSplit)
	}
}

func splitText(split []api.TrafficWeight) string {
	split = slices.Clone(split)
	slices.SortFunc(split, func(a, b api.TrafficWeight) int { return strings.Compare(a.DeploymentID, b.DeploymentID) })
	return fmt.Sprint(split)
}

// asApproved reports whether what is left to do belongs to the plan that was approved: the
// same files and variables, no other address, and no rollout on a split that somebody has
// changed since.
func (p *stackPass) asApproved(run *runRecord, todo []planning.Change) bool {
	if p.folder.Digest != run.Files {
		return false
	}
	for _, c := range todo {
		if !slices.Contains(run.Allowed, c.Address.String()) {
			return false
		}
		starts := c.Kind == declaration.RolloutKind && (c.Action == planning.Create || c.Action == planning.Replace)
		for _, e := range p.plan.changes.Standing.Endpoints {
			if was, known := run.Splits[e.ID]; starts && known && e.ID == c.EndpointID && was != splitText(e.TrafficSplit) {
				return false
			}
		}
	}
	return true
}

// todo are the changes that this stack would make now: what Git has changed, and what
// stands otherwise where drift is corrected.
func (p *stackPass) todo() []planning.Change {
	var out []planning.Change
	for _, c := range p.plan.changes.Pending() {
		starts := c.Kind == declaration.RolloutKind && (c.Action == planning.Create || c.Action == planning.Replace)
		switch {
		case starts && !p.asksNow() && !p.s.mayAgain(c.Digest):
			continue // only a commit or a person's word starts a rollout, never what somebody has done at the engine
		case c.Action == planning.Create && p.vanished(c) && !p.asksNow() && p.config.Drift != CorrectDrift:
			continue // somebody has deleted it: told as drift
		case c.Action == planning.Delete && neverStarted(c): // it would hold its endpoint for ever
		case c.Action == planning.Delete && c.Kind == declaration.RolloutKind:
			continue // a record of history
		case c.Action == planning.Update && p.config.Drift != CorrectDrift && p.theirs(c):
			continue
		case starts && c.Digest != "" && p.hasDecided(c):
			continue // a person has decided against this very spec
		case p.justStarted(c):
			continue // the engine has taken it; what is read of it may be older than that
		case c.Kind == declaration.RolloutKind && c.Action == planning.Create && c.Digest != "" && p.s.Submitted[c.Address.String()] == c.Digest:
			continue // it was submitted, and its record was deleted since: that is no reason to run it again
		}
		out = append(out, c)
	}
	return out
}

// hasDecided reports whether a person has decided against the spec of a rollout.
func (p *stackPass) hasDecided(c planning.Change) bool {
	_, ok := p.decisions[decided{c.Address.String(), c.Digest}]
	return ok
}

// asksNow reports whether Git asks for something that was not in step yet: a commit is
// being applied for the first time.
func (p *stackPass) asksNow() bool {
	run := p.current()
	return run != nil && p.s.Settled != run.Commit.ID
}

// vanished reports whether a thing that would be made was there already: somebody has
// deleted it.
func (p *stackPass) vanished(c planning.Change) bool {
	return slices.ContainsFunc(p.s.Bound, func(b boundThing) bool { return b.Address == c.Address && b.ID != c.ID })
}

// withoutWeight is a change of a deployment that was there already, or whose endpoint has a
// split: made again it takes no traffic, since what serves now is not its to disturb.
func (p *stackPass) withoutWeight(c planning.Change) planning.Change {
	if c.Action != planning.Create || c.Declared.Deployment == nil || !p.vanished(c) {
		return c
	}
	d := *c.Declared.Deployment
	d.InitialTrafficWeight.Value = 0
	c.Declared.Deployment = &d
	return c
}

// neverStarted reports whether a rollout was made and has moved nothing.
func neverStarted(c planning.Change) bool {
	return c.Kind == declaration.RolloutKind && c.Live != nil && c.Live.State == engineclient.StatePending
}

// theirs reports whether a change is only about what Git has not made.
func (p *stackPass) theirs(c planning.Change) bool {
	for _, f := range c.Fields {
		if f.Whose == planning.Yours || f.Whose == planning.Untold && p.current() != nil {
			return false
		}
	}
	return true
}

// mending is the run that puts a drift right: that of the commit which is in step.
func (p *stackPass) mending(ctx context.Context) (*runRecord, error) {
	run, err := p.reopen(ctx, p.s.Commit.ID)
	if err != nil {
		return nil, err
	}
	if run == nil {
		run = &runRecord{Commit: p.s.Commit, Files: p.s.Files, Began: p.now(), Arrived: []string{p.s.Commit.ID}}
		p.runs = append(p.runs, run)
	}
	run.Mends++
	run.Acted = time.Time{}
	return run, nil
}

// sweep goes over the changes once. One that waits keeps those that depend on it waiting;
// the others go on. What waits for a rollout never keeps that rollout from its start.
func (p *stackPass) sweep(ctx context.Context, run *runRecord, todo []planning.Change) (made int, err error) {
	p.plan.waits = nil
	undone := map[declaration.Address]string{} // by the rollout that it waits for, if it is that
	for _, c := range todo {
		if slices.ContainsFunc(c.DependsOn, func(a declaration.Address) bool {
			by, no := undone[a]
			return no && (by == "" || by != c.ID)
		}) {
			undone[c.Address] = ""
			continue
		}
		acted, w, err := p.one(ctx, run, c)
		if err != nil {
			return made, err
		}
		if w.For != "" {
			undone[c.Address] = c.BlockedBy
			p.plan.waits = append(p.plan.waits, w)
			continue
		}
		made += acted
		p.plan.acted += acted
		if c.Action == planning.Create || c.Action == planning.Replace {
			undone[c.Address] = "" // what depends on it is planned with its id
		}
	}
	return made, nil
}

// one makes one change, if it waits for nothing.
func (p *stackPass) one(ctx context.Context, run *runRecord, c planning.Change) (made int, w Wait, err error) {
	if w, err = p.ready(ctx, c); err != nil || w.For != "" {
		return 0, w, err
	}
	if made, w, err = p.act(ctx, run, c); err != nil {
		err = fmt.Errorf("%s: %w", c.Address, err)
	}
	return made, w, err
}

// blocked are the changes that cannot be made now, by their reasons.
func blocked(todo []planning.Change) []Wait {
	var out []Wait
	for _, c := range todo {
		if c.Blocked == "" {
			continue
		}
		w := Wait{For: ForPerson, What: c.Address.String() + ": " + c.Blocked}
		if c.BlockedBy != "" {
			w.For = ForRollout
		}
		out = append(out, w)
	}
	return out
}

// ready reports what one change waits for; the zero Wait for nothing.
func (p *stackPass) ready(ctx context.Context, c planning.Change) (Wait, error) {
	if w := blocked([]planning.Change{c}); len(w) > 0 {
		return w[0], nil
	}
	switch {
	case c.Action == planning.Delete && c.Protected:
		return Wait{For: ForPerson, What: c.Address.String() + " is protected by prevent_destroy and is not declared any more"}, nil
	case c.Kind == declaration.RolloutKind && (c.Action == planning.Create || c.Action == planning.Replace):
		return p.sidesReady(c), nil
	}
	return Wait{}, ctx.Err()
}

// sidesReady waits for the replicas of deployments that ask to be waited for, before a
// rollout moves traffic between them.
func (p *stackPass) sidesReady(c planning.Change) Wait {
	d := c.Declared.Rollout
	if d == nil {
		return Wait{}
	}
	for _, side := range []declaration.Link{d.Source, d.Target} {
		if side.To == nil {
			continue
		}
		dep, ok := p.plan.changes.Find(side.To.Address.String())
		if !ok || dep.Declared.Deployment == nil || !dep.Declared.Deployment.WaitReady.Value || dep.ID == "" {
			continue
		}
		if w := p.replicas(dep); w.For != "" {
			return w
		}
	}
	return Wait{}
}

// foreign are the endpoints of this stack that somebody else reconciles, also while there
// is nothing to write: to be in step with what another one owns is an accident.
func (p *stackPass) foreign() []Wait {
	var out []Wait
	for _, e := range p.plan.changes.Standing.Endpoints {
		if e.Owner != "" {
			out = append(out, Wait{For: ForOwner, What: fmt.Sprintf("endpoint %s belongs to %s; two owners would undo each other's work; when that one is gone: sluice reconcile release %[1]s --reason WHY", planning.BareName(e.Name), inert(e.Owner))})
		}
	}
	return out
}

// starting waits for the deployments that a run has made, where they ask to be waited for:
// what depends on this stack begins when they serve.
func (p *stackPass) starting(run *runRecord) []Wait {
	var out []Wait
	for _, c := range p.plan.changes.List {
		d := c.Declared.Deployment
		if d == nil || !d.WaitReady.Value || !slices.ContainsFunc(run.Done, func(x doneChange) bool { return x.Action == planning.Create && x.Address == c.Address.String() }) {
			continue
		}
		if w := p.replicas(c); w.For != "" {
			out = append(out, w)
		}
	}
	return out
}

// replicas waits for those that a deployment's bounds ask for.
func (p *stackPass) replicas(c planning.Change) Wait {
	for _, e := range p.plan.changes.Standing.Endpoints {
		for _, d := range e.All {
			if d.ID != c.ID || d.Autoscaling.MinReplicas == nil {
				continue
			}
			want := *d.Autoscaling.MinReplicas
			if want > 0 && d.Status.ReadyReplicas >= want && strings.HasSuffix(d.Status.State, "_SCALING") {
				return Wait{For: ForReady, What: fmt.Sprintf("%s is scaling", c.Address)}
			}
			if d.Status.ReadyReplicas < want {
				return Wait{For: ForReady, What: fmt.Sprintf("%s: %d of %s ready", c.Address, d.Status.ReadyReplicas, planning.Count(want, "replica"))}
			}
		}
	}
	return Wait{}
}

// act makes one change: its intent first, then the change, then its outcome with all that
// follows from it.
func (p *stackPass) act(ctx context.Context, run *runRecord, c planning.Change) (int, Wait, error) {
	if c.Kind == declaration.RolloutKind && c.Action != planning.Steer && c.Action != planning.Delete {
		p.slots.Lock()
		defer p.slots.Unlock()
		if w, full, err := p.slotFor(ctx, c); err != nil || full {
			return 0, w, err
		}
	}
	if w := p.inVain(c); w.For != "" {
		return 0, w, nil
	}
	if err := p.claim(ctx, c); err != nil {
		return 0, Wait{}, err
	}
	in := journal.Intent{
		ID:         strings.Join([]string{p.k.Repository, p.k.Stack, run.Commit.ID, c.Address.String(), string(c.Action), token()}, " "),
		Repository: p.k.Repository, Stack: p.k.Stack, Address: c.Address.String(), Verb: string(c.Action) + "_" + strings.TrimPrefix(string(c.Kind), "sluice_"),
	}
	first := run.Acted.IsZero()
	if first { // with the digest that was approved, which is another one after the first write
		run.Acted = p.now()
	}
	again := Wait{}
	change := func(ctx context.Context) (journal.Batch, error) {
		done, err := Do(ctx, p.engine, p.withoutWeight(c), p.plan.changes.Bindings(), By{Origin: p.origin(run, c), History: p.plan.history()})
		if err != nil {
			return journal.Batch{}, err
		}
		p.meters.writes.WithLabelValues(in.Verb).Inc()
		p.made(run, c, done)
		if done.Again {
			again = Wait{For: ForReady, What: fmt.Sprintf("%s: the engine is still bringing it to rest before it is %s", c.Address, pastOf(c.Action))}
		}
		return p.save(), nil
	}
	err := p.within(ctx, "apply", func(ctx context.Context) error { return p.ledger.intendWith(ctx, in, p.save(), change) },
		ofStack.String(in.Stack), ofVerb.String(in.Verb), ofAddress.String(clip(inert(in.Address), longestAddress)), ofCommit.String(run.Commit.ID))
	if err != nil && first && (settled(err) || refusedBy(err)) {
		run.Acted = time.Time{} // nothing was changed
	}
	if err != nil {
		return 0, Wait{}, err
	}
	if again.For != "" {
		return 0, again, nil
	}
	return 1, Wait{}, nil
}

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

// slotFor reports whether a rollout may be submitted beside those that are under way. One
// that is made already has its place.
func (p *stackPass) slotFor(ctx context.Context, c planning.Change) (Wait, bool, error) {
	if c.Action == planning.Start {
		return Wait{}, false, nil
	}
	return p.slot(ctx)
}

// origin tells the engine who asked.
func (p *stackPass) origin(run *runRecord, c planning.Change) string {
	text := fmt.Sprintf("git %s@%s %s", p.k, short(run.Commit.ID), c.Address)
	if len(run.Pulls) > 0 {
		text += fmt.Sprintf(" pull request %d", run.Pulls[len(run.Pulls)-1])
	}
	return inert(text)
}

// made records what a change has come to.
func (p *stackPass) made(run *runRecord, c planning.Change, done Done) {
	address := c.Address.String()
	if done.Again { // it is on its way, and the same change is made again until it is done
		if done.Rollout != nil {
			p.watchToo(run, c, *done.Rollout)
		}
		return
	}
	p.countRepeat(c)
	run.Done = append(run.Done, doneChange{Action: c.Action, Address: address, ID: done.ID})
	if !slices.Contains(p.s.Done, address) {
		p.s.Done = append(p.s.Done, address)
	}
	if c.Action == planning.Delete {
		p.s.unbind(c.Address)
	} else {
		p.s.bind(c.Address, done.ID)
	}
	if done.Rollout != nil {
		digest := p.watchToo(run, c, *done.Rollout)
		p.s.submit(address, digest)
		p.s.Again = slices.DeleteFunc(p.s.Again, func(a allowedAgain) bool { return a.Spec == digest })
	}
	p.tell(&p.batch, happening{
		Key:  []string{run.Commit.ID, address, string(c.Action), done.ID, fmt.Sprint(len(run.Done))},
		Kind: "apply." + string(c.Action), Stack: p.k.Stack, Endpoint: c.Endpoint, Rollout: rolloutID(done), Commit: run.Commit.ID, Severity: info,
		Text: fmt.Sprintf("%s: %s %s (%s) for commit %s", p.k, pastOf(c.Action), address, done.ID, short(run.Commit.ID)),
	})
}

func rolloutID(d Done) string {
	if d.Rollout == nil {
		return ""
	}
	return d.Rollout.ID
}

func pastOf(a planning.Action) string {
	return map[planning.Action]string{
		planning.Create: "created", planning.Start: "started", planning.Steer: "steered", planning.Update: "updated",
		planning.Replace: "replaced", planning.Delete: "deleted", planning.NoOp: "left",
	}[a]
}

// watchToo adds a rollout to those that a run watches, or sees it anew. It returns the
// digest of its spec.
func (p *stackPass) watchToo(run *runRecord, c planning.Change, live api.Rollout) (digest string) {
	p.rollouts[live.ID] = live
	for _, other := range p.runs {
		for i := range other.Rollouts {
			if other.Rollouts[i].ID == live.ID {
				other.Rollouts[i].see(live)
				return other.Rollouts[i].Spec
			}
		}
	}
	r := runRollout{Address: c.Address.String(), Endpoint: c.Endpoint, EndpointID: live.EndpointID, ID: live.ID, Spec: c.Digest, Since: p.now()}
	if live.Sluice != nil && live.Sluice.Digest != "" {
		r.Spec = live.Sluice.Digest
	}
	r.see(live)
	run.Rollouts = append(run.Rollouts, r)
	p.s.UnderWay++
	return r.Spec
}

// takeInAll binds what was found at the engine: what an earlier try has made, whose answer
// or whose record was lost, and what stood already. A rollout that was cancelled there is
// a person's decision also for a journal that has just begun. What is not there any more,
// and is not asked for, is let go.
func (p *stackPass) takeInAll() {
	for _, c := range p.plan.changes.List {
		if c.ID == "" || c.Action == planning.Delete || c.Action == planning.Replace {
			continue
		}
		if !p.s.has(c.ID) {
			p.tellTaken("apply.taken_in", c.Address, c.ID, "stands already, made by others or by a try whose record was lost; it is taken in")
		}
		p.s.bind(c.Address, c.ID)
		if c.Kind == declaration.RolloutKind && c.Live != nil {
			p.takeInRollout(c, *c.Live)
		}
	}
	for _, c := range slices.Concat(p.plan.changes.List, p.plan.kept) {
		if c.Action == planning.Delete && c.Kind == declaration.RolloutKind && c.Blocked == "" && !neverStarted(c) {
			p.s.unbind(c.Address) // the block is gone, the record at the engine is history
		}
	}
	for _, b := range slices.Clone(p.s.Bound) {
		kept := slices.ContainsFunc(p.plan.kept, func(c planning.Change) bool { return c.Address == b.Address })
		if _, asked := p.plan.changes.Find(b.Address.String()); !asked && !kept {
			p.s.unbind(b.Address)
			p.tellTaken("apply.gone", b.Address, b.ID, "is not declared and not there any more")
		}
	}
}

// tellTaken tells what was found rather than made.
func (p *stackPass) tellTaken(kind string, address declaration.Address, id, what string) {
	p.tell(&p.batch, happening{
		Key: []string{p.s.Commit.ID, address.String(), id}, Kind: kind, Stack: p.k.Stack, Commit: p.s.Commit.ID, Severity: info,
		Text: fmt.Sprintf("%s: %s (%s) %s", p.k, address, id, what),
	})
}

func (p *stackPass) takeInRollout(c planning.Change, live api.Rollout) {
	address := c.Address.String()
	p.s.submit(address, c.Digest)
	if !engineclient.Terminal(live.State) {
		if run := p.current(); run != nil {
			p.watchToo(run, c, live)
		}
		return
	}
	if run := p.current(); run != nil && live.CreatedAt.After(run.Began.Add(-time.Minute)) && !p.watched(live.ID) {
		p.watchToo(run, c, live)
	}
	if live.State == engineclient.StateCanceled && !p.hasDecided(c) {
		p.decide(decisionRecord{Address: address, Spec: c.Digest, Verb: Cancel, Rollout: live.ID, At: p.now()})
	}
}

func (p *stackPass) watched(id string) bool {
	return slices.ContainsFunc(p.runs, func(run *runRecord) bool {
		return slices.ContainsFunc(run.Rollouts, func(r runRollout) bool { return r.ID == id })
	})
}

// endpointIDs are the endpoints that a plan is about.
func (p *stackPass) endpointIDs() []string {
	var out []string
	for _, e := range p.plan.changes.Standing.Endpoints {
		out = append(out, e.ID)
	}
	return out
}
