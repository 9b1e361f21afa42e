package reconciler

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// reverse takes a rollout back: one that is under way is canceled first, which freezes
// the split; then the same way is gone from its target to its source, step by step. It
// takes several passes and holds nothing in between.
func (p *stackPass) reverse(ctx context.Context, a *askRecord) error {
	t, err := p.toTakeBack(ctx, a)
	if err != nil {
		return err
	}
	r := t.rollout()
	live, err := p.engine.GetRollout(ctx, r.EndpointID, r.ID)
	if err != nil {
		return err
	}
	if live.State == engineclient.StatePending {
		if err := p.control(ctx, a, r); err != nil {
			return err
		}
		p.answer(a, fmt.Sprintf("rollout %s had moved nothing and is called off", r.ID), "")
		return nil
	}
	if !engineclient.Terminal(live.State) {
		return p.control(ctx, a, r) // and go on when it is CANCELED
	}
	if live.CurrentTrafficPercent != nil && *live.CurrentTrafficPercent == 0 {
		return refusef("rollout %s serves nothing on its target: there is nothing to take back", r.ID)
	}
	if !a.Planless && p.remember(p.c.Name).plan == nil && p.tree != nil {
		a.Planless = true // how large the side is to be that is gone back to stands in Git: it may be known after this pass
		p.hasten()
		return nil
	}
	made, err := p.takeBack(ctx, a, t, live)
	if err != nil {
		return err
	}
	p.decide(decisionRecord{Address: r.Address, Spec: r.Spec, Verb: Reverse, Rollout: r.ID, Who: a.Who, Reason: a.Reason, At: a.At})
	p.answer(a, fmt.Sprintf("rollout %s takes %s back", made.ID, r.ID), "")
	return nil
}

// taken is a rollout that is to be taken back, in its run. A run that is over is a copy:
// nothing of it is changed before the way back is made.
type taken struct {
	run *runRecord
	at  int
}

func (t taken) rollout() *runRollout { return &t.run.Rollouts[t.at] }

// toTakeBack finds the rollout that an ask means among those that Git has submitted: of
// one endpoint the one under way, else the one that ended last.
func (p *stackPass) toTakeBack(ctx context.Context, a *askRecord) (taken, error) {
	runs, err := p.known(ctx)
	if err != nil {
		return taken{}, err
	}
	best := map[string]taken{}
	for _, run := range runs {
		if a.Pull != 0 && !slices.Contains(run.Pulls, a.Pull) {
			continue
		}
		for i := range run.Rollouts {
			t, r := taken{run, i}, &run.Rollouts[i]
			if r.Reverse || r.State == "DELETED" || !p.means(a, r) {
				continue
			}
			if was, ok := best[r.EndpointID]; !ok || r.Ended.IsZero() || !was.rollout().Ended.IsZero() && r.Ended.After(was.rollout().Ended) {
				best[r.EndpointID] = t
			}
		}
	}
	var found []*runRollout
	for _, id := range sortedKeys(best) {
		found = append(found, best[id].rollout())
	}
	switch len(found) {
	case 0:
		return taken{}, refusef("no rollout of %s can be taken back; name one that was submitted from Git", p.k)
	case 1:
	default:
		return taken{}, refusef("several rollouts can be meant (%s); name one: %s", joined(names(found)), p.way(Reverse, found[0].Endpoint))
	}
	t := best[found[0].EndpointID]
	if by := t.takenBackBy(); by != nil && a.Way == nil {
		return taken{}, refusef("rollout %s was taken back already, by %s, which is %s", found[0].ID, by.ID, by.State)
	}
	if len(a.Rollouts) == 0 {
		return t, p.chosen(ctx, a, found[0])
	}
	return t, nil
}

// takenBackBy is the way back that is under way or at its end already; nil for none.
func (t taken) takenBackBy() *runRollout {
	for i := t.at + 1; i < len(t.run.Rollouts); i++ {
		by := &t.run.Rollouts[i]
		if by.Reverse && by.EndpointID == t.rollout().EndpointID && (by.Ended.IsZero() || by.State == "COMPLETED") {
			return by
		}
	}
	return nil
}

// known are the runs that are open and copies of those that were over last.
func (p *stackPass) known(ctx context.Context) ([]*runRecord, error) {
	var out []*runRecord
	for _, commit := range p.s.Recent {
		run, err := read[runRecord](ctx, p.ledger, runKey(p.k, commit))
		if err != nil {
			return nil, err
		}
		out = append(out, &run)
	}
	return append(out, p.runs...), nil
}

// backwards is the spec of the way back. It has the strategy of the way there, those of
// its steps that are still before it, and no gate: there is no healthy side to compare with.
func backwards(spec api.RolloutSpec, live api.Rollout, carried int, final *int) api.RolloutSpec {
	out := api.RolloutSpec{SourceDeploymentID: live.TargetDeploymentID, TargetDeploymentID: live.SourceDeploymentID, FinalTargetReplicas: final}
	switch {
	case spec.BlueGreen != nil:
		out.BlueGreen = &api.BlueGreen{}
	case spec.Rolling != nil:
		out.Rolling = &api.Rolling{}
	default:
		out.Canary = &api.Canary{}
		if spec.Canary != nil {
			out.Canary.StepInterval = spec.Canary.StepInterval
			for _, s := range spec.Canary.Steps {
				if s.Traffic > carried {
					out.Canary.Steps = append(out.Canary.Steps, api.CanaryStep{Traffic: s.Traffic})
				}
			}
			if len(out.Canary.Steps) == 0 { // the last step of the way there is 100
				out.Canary.Steps = []api.CanaryStep{{Traffic: 100}}
			}
		}
	}
	return out
}

// carried is the percent of the pair that the side which is gone back to serves now, by the
// live split: somebody may have moved it since the rollout ended.
func (p *stackPass) carried(ctx context.Context, live api.Rollout) (int, error) {
	ep, err := p.engine.GetEndpoint(ctx, live.EndpointID)
	if err != nil {
		return 0, err
	}
	all, err := engineclient.Collect(p.engine.Deployments(ctx, live.EndpointID, engineclient.ListOptions{}))
	if err != nil {
		return 0, err
	}
	back, there := planning.ShareIn(ep.TrafficSplit, all, live.SourceDeploymentID), planning.ShareIn(ep.TrafficSplit, all, live.TargetDeploymentID)
	if back+there == 0 {
		return 0, nil
	}
	return int(math.Ceil(100*back/(back+there) - 1e-9)), nil
}

// specOf is what a rollout was asked to be, as far as its engine tells.
func specOf(live api.Rollout) api.RolloutSpec {
	if live.Sluice != nil && live.Sluice.Spec != nil {
		return *live.Sluice.Spec
	}
	var out api.RolloutSpec
	switch live.Strategy {
	case api.PrefixStrategy + "BLUE_GREEN":
		out.BlueGreen = &api.BlueGreen{}
	case api.PrefixStrategy + "ROLLING":
		out.Rolling = &api.Rolling{}
	default:
		out.Canary = &api.Canary{}
		for _, s := range live.Status.Steps {
			out.Canary.Steps = append(out.Canary.Steps, api.CanaryStep{Traffic: s.TargetTrafficPercent})
		}
	}
	return out
}

// takeBack makes and starts the reverse rollout, or takes in the one of an earlier try.
func (p *stackPass) takeBack(ctx context.Context, a *askRecord, t taken, live api.Rollout) (api.Rollout, error) {
	r := t.rollout()
	if a.Way == nil {
		carried, err := p.carried(ctx, live)
		if err != nil {
			return api.Rollout{}, err
		}
		way := backwards(specOf(live), live, carried, p.sizeOfBefore(live))
		a.Way = &way // it stays the same however far it has come when it is looked for again
	}
	spec := *a.Way
	digest := planning.DigestOf(spec)
	made, ok, err := p.madeSince(ctx, r.EndpointID, spec, digest, live)
	if err != nil {
		return made, err
	}
	if !ok {
		if by, held, err := p.engine.ActiveRollout(ctx, r.EndpointID); err != nil || held {
			if err != nil {
				return made, err
			}
			return made, refusef("%s", planning.HeldBy(r.Endpoint, by))
		}
		if made, err = p.makeWayBack(ctx, a, t, spec, digest); err != nil {
			return made, err
		}
	}
	if err := p.follow(ctx, a, t, made, digest); err != nil || made.State != engineclient.StatePending {
		return made, err
	}
	return p.startWayBack(ctx, a, r, made)
}

// makeWayBack creates the reverse rollout. Who watches it is recorded with its making.
func (p *stackPass) makeWayBack(ctx context.Context, a *askRecord, t taken, spec api.RolloutSpec, digest string) (made api.Rollout, err error) {
	r := t.rollout()
	if p.live.ours() {
		spec.Sluice = &api.SpecExtra{Digest: digest, Origin: inert(fmt.Sprintf("reverse of %s, asked by %s", r.ID, a.Who))}
	}
	in := journal.Intent{ID: a.ID + " reverse " + r.ID + " " + token(), Repository: p.k.Repository, Stack: p.k.Stack, Address: r.Address, Verb: "create_rollout"}
	asked := journal.Batch{Put: []journal.Record{record(askKey(p.k, a.ID), *a)}}
	err = p.ledger.intendWith(ctx, in, asked, func(ctx context.Context) (journal.Batch, error) {
		if made, err = p.engine.CreateRollout(ctx, r.EndpointID, spec, planning.IdempotencyKey(r.EndpointID, digest, a.ID)); err != nil {
			return journal.Batch{}, err
		}
		return journal.Batch{}, nil
	})
	return made, err
}

// startWayBack starts the reverse rollout. One that the engine will not start is deleted
// again: it would hold its endpoint for ever.
func (p *stackPass) startWayBack(ctx context.Context, a *askRecord, r *runRollout, made api.Rollout) (api.Rollout, error) {
	in := journal.Intent{ID: a.ID + " start " + made.ID + " " + token(), Repository: p.k.Repository, Stack: p.k.Stack, Address: r.Address, Verb: "start_rollout"}
	started := made
	err := p.ledger.intend(ctx, in, func(ctx context.Context) (journal.Batch, error) {
		var err error
		started, err = p.engine.StartRollout(ctx, r.EndpointID, made.ID)
		return journal.Batch{}, err
	})
	if err == nil || !settled(err) || engineclient.IsStale(err) {
		return started, err
	}
	in = journal.Intent{ID: a.ID + " delete " + made.ID + " " + token(), Repository: p.k.Repository, Stack: p.k.Stack, Address: r.Address, Verb: "delete_rollout"}
	gone := p.ledger.intend(ctx, in, func(ctx context.Context) (journal.Batch, error) {
		return journal.Batch{}, p.engine.DeleteRollout(ctx, r.EndpointID, made.ID, "")
	})
	if gone != nil && !engineclient.IsNotFound(gone) {
		return made, gone // it is looked for again, and started or deleted then
	}
	p.unfollow(made.ID)
	return made, refusef("the way back cannot start: %s", err)
}

// madeSince finds a reverse rollout that an earlier try has made: of the same spec, and
// younger than the rollout that it takes back.
func (p *stackPass) madeSince(ctx context.Context, endpoint string, spec api.RolloutSpec, digest string, since api.Rollout) (api.Rollout, bool, error) {
	for made, err := range p.engine.Rollouts(ctx, endpoint, "") {
		if err != nil {
			return api.Rollout{}, false, err
		}
		if made.CreatedAt.After(since.CreatedAt.Time) && planning.SameRollout(made, spec, digest) {
			return made, true, nil
		}
	}
	return api.Rollout{}, false, nil
}

// follow makes the run watch the reverse rollout too; one that was over is open again for it.
func (p *stackPass) follow(ctx context.Context, a *askRecord, t taken, made api.Rollout, digest string) error {
	over := !t.run.Ended.IsZero()
	run, err := p.reopen(ctx, t.run.Commit.ID)
	if err != nil || run == nil {
		return err
	}
	run.TakenBack = run.TakenBack || over
	if slices.ContainsFunc(run.Rollouts, func(r runRollout) bool { return r.ID == made.ID }) {
		return nil // another one's word has brought it about, or this one in an earlier pass
	}
	of := &run.Rollouts[t.at]
	if n := len(of.Steered); n == 0 || of.Steered[n-1].Verb != Reverse || of.Steered[n-1].Who != a.Who { // unless its cancel has told it
		of.Steered = append(of.Steered, steered{Verb: Reverse, Who: a.Who, Reason: a.Reason, At: p.now()})
	}
	back := runRollout{Address: of.Address, Endpoint: of.Endpoint, EndpointID: of.EndpointID, ID: made.ID, Spec: digest, Since: p.now(), Reverse: true}
	back.see(made)
	p.rollouts[made.ID] = made
	text := fmt.Sprintf("%s: rollout %s takes %s back, asked by %s; live is now ahead of Git", back.Endpoint, made.ID, of.ID, inert(a.Who))
	run.Rollouts = append(run.Rollouts, back)
	p.say(run, back, "rollout.reversing", warning, text)
	return nil
}

// sizeOfBefore is how large the side is to be at the end that is gone back to: as Git wants
// it, and within that as large as the other side was to become in its place. Left to the
// engine it would be both sides' count together, one candidate more at each way back. Nil
// when neither is known.
func (p *stackPass) sizeOfBefore(live api.Rollout) *int {
	n := 0
	if x := live.Sluice; x != nil && (x.Spec == nil || x.Spec.FinalTargetReplicas == nil) {
		n = x.FinalTarget
	}
	if plan := p.remember(p.c.Name).plan; plan != nil {
		for _, c := range plan.changes.List {
			if d := c.Declared.Deployment; d != nil && c.ID == live.SourceDeploymentID && !d.MinReplicas.Unknown && !d.MaxReplicas.Unknown {
				n = min(max(n, d.MinReplicas.Value), d.MaxReplicas.Value)
			}
		}
	}
	if n < 1 {
		return nil
	}
	return &n
}

// unfollow forgets a rollout that is deleted again before it has moved anything.
func (p *stackPass) unfollow(id string) {
	for _, run := range p.runs {
		run.Rollouts = slices.DeleteFunc(run.Rollouts, func(r runRollout) bool { return r.ID == id })
	}
}
