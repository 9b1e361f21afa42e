package reconciler

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// reverse takes a rollout back: one that is under way is canceled first, which freezes
// the split; then the same way is gone from its target to its source, step by step. It
// takes several passes and holds nothing in between.
func (p *stackPass) reverse(ctx context.Context, a *askRecord) error {
	chosen, err := p.choose(ctx, a, func(_ *runRecord, r *runRollout) bool { return !r.Reverse && r.State != "DELETED" })
	if err != nil {
		return err
	}
	if len(chosen) != 1 {
		return refusef("no rollout of %s can be taken back; name one that was submitted from Git", p.k)
	}
	r := chosen[0]
	live, err := p.engine.GetRollout(ctx, r.EndpointID, r.ID)
	if err != nil {
		return err
	}
	if live.State == engineclient.StatePending {
		return refusef("rollout %s has moved nothing yet; cancel it", r.ID)
	}
	if !engineclient.Terminal(live.State) {
		return p.control(ctx, a, r) // and go on when it is CANCELED
	}
	if live.CurrentTrafficPercent != nil && *live.CurrentTrafficPercent == 0 {
		return refusef("rollout %s serves nothing on its target: there is nothing to take back", r.ID)
	}
	made, err := p.takeBack(ctx, a, r, live)
	if err != nil {
		return err
	}
	p.decide(decisionRecord{Address: r.Address, Spec: r.Spec, Verb: Reverse, Rollout: r.ID, Who: a.Who, Reason: a.Reason, At: a.At})
	p.answer(a, fmt.Sprintf("rollout %s takes %s back", made.ID, r.ID), "")
	return nil
}

// backwards is the spec of the way back. It has the strategy of the way there, those of
// its steps that are still before it, and no gate: there is no healthy side to compare with.
func backwards(spec api.RolloutSpec, live api.Rollout, carried int) api.RolloutSpec {
	out := api.RolloutSpec{SourceDeploymentID: live.TargetDeploymentID, TargetDeploymentID: live.SourceDeploymentID}
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
func (p *stackPass) takeBack(ctx context.Context, a *askRecord, r *runRollout, live api.Rollout) (api.Rollout, error) {
	carried, err := p.carried(ctx, live)
	if err != nil {
		return api.Rollout{}, err
	}
	spec := backwards(specOf(live), live, carried)
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
		spec.Sluice = &api.SpecExtra{Digest: digest, Origin: inert(fmt.Sprintf("reverse of %s, asked by %s", r.ID, a.Who))}
		if !p.live.ours() {
			spec.Sluice = nil
		}
		in := journal.Intent{ID: a.ID + " reverse " + r.ID + " " + token(), Repository: p.k.Repository, Stack: p.k.Stack, Address: r.Address, Verb: "create_rollout"}
		err := p.ledger.intend(ctx, in, func(ctx context.Context) (journal.Batch, error) {
			var err error
			made, err = p.engine.CreateRollout(ctx, r.EndpointID, spec, planning.IdempotencyKey(r.EndpointID, digest, a.ID))
			return journal.Batch{}, err
		})
		if err != nil {
			return made, err
		}
	}
	if made.State == engineclient.StatePending {
		in := journal.Intent{ID: a.ID + " start " + made.ID + " " + token(), Repository: p.k.Repository, Stack: p.k.Stack, Address: r.Address, Verb: "start_rollout"}
		err = p.ledger.intend(ctx, in, func(ctx context.Context) (journal.Batch, error) {
			var err error
			made, err = p.engine.StartRollout(ctx, r.EndpointID, made.ID)
			return journal.Batch{}, err
		})
	}
	if err == nil {
		p.follow(a, r, made, digest)
	}
	return made, err
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

// follow makes the run watch the reverse rollout too.
func (p *stackPass) follow(a *askRecord, of *runRollout, made api.Rollout, digest string) {
	for _, run := range p.runs {
		for i := range run.Rollouts {
			if &run.Rollouts[i] != of {
				continue
			}
			of.Steered = append(of.Steered, steered{Verb: Reverse, Who: a.Who, Reason: a.Reason, At: p.now()})
			back := runRollout{Address: of.Address, Endpoint: of.Endpoint, EndpointID: of.EndpointID, ID: made.ID, Spec: digest, Since: p.now(), Reverse: true}
			back.see(made)
			p.rollouts[made.ID] = made
			run.Rollouts = append(run.Rollouts, back)
			p.say(run, back, "rollout.reversing", warning, fmt.Sprintf("%s: rollout %s takes %s back, asked by %s; live is now ahead of Git", back.Endpoint, made.ID, of.ID, inert(a.Who)))
			return
		}
	}
}
