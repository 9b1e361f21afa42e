package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// FolderApply applies a plan from a working copy in one go, and waits: it is for a person
// at a terminal and for a pipeline. The loop that runs for weeks does each act by itself
// and holds nothing while it waits.
type FolderApply struct {
	Client  *engineclient.Client
	Origin  string // who asks, kept with each rollout
	Waiting WaitMode
	Replan  func(context.Context) (planning.Changes, error) // once more is known
	Tell    Teller

	ids    planning.Bindings
	runs   []Ended
	waited map[declaration.Address]bool
}

// WaitMode is whether an apply waits for its rollouts.
type WaitMode string

// The modes. AsDeclared waits for those whose wait is true.
const (
	AsDeclared WaitMode = ""
	NoWait     WaitMode = "none"
)

// Teller hears what an apply does.
type Teller interface {
	Did(planning.Change, Done)
	Waits(planning.Change, string) // for replicas, with how things are; only what is new
	Rollout(planning.Change) engineclient.Sink
}

// Ended is a rollout of an apply at the end of the wait for it.
type Ended struct {
	Change  planning.Change
	Rollout api.Rollout
	Outcome engineclient.Outcome // empty for one that was not waited for
}

// Apply does the changes in their order. A rollout is waited for before what depends on
// it, and at the end; so rollouts that do not depend on each other run side by side. The
// first error ends it; what was done stays, and the next apply goes on from there.
func (f *FolderApply) Apply(ctx context.Context, changes planning.Changes) ([]Ended, error) {
	f.ids, f.waited = changes.Bindings(), map[declaration.Address]bool{}
	var started []planning.Change
	for _, c := range changes.List {
		if !c.Pending() && !c.Waits {
			continue
		}
		if err := f.awaitWhat(ctx, c, started); err != nil {
			return f.runs, err
		}
		after, err := f.one(ctx, c)
		if err != nil {
			return f.runs, fmt.Errorf("%s: %w", c.Address, err)
		}
		if after.Kind == declaration.RolloutKind && after.Action != planning.Delete {
			started = append(started, after)
		}
	}
	for _, c := range started {
		if err := f.await(ctx, c); err != nil {
			return f.runs, err
		}
	}
	return f.runs, nil
}

// awaitWhat waits for the rollouts that a change comes after.
func (f *FolderApply) awaitWhat(ctx context.Context, c planning.Change, started []planning.Change) error {
	for _, s := range started {
		if slices.Contains(c.DependsOn, s.Address) {
			if err := f.await(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// one does one change to its end: it is planned again when a value was not known, made
// and then started when it is a rollout, and repeated while the engine still works at it.
func (f *FolderApply) one(ctx context.Context, c planning.Change) (planning.Change, error) {
	done, err := Do(ctx, f.Client, c, f.ids, By{Origin: f.Origin})
	var unknown *NotKnown
	if errors.As(err, &unknown) {
		if c, err = f.again(ctx, c); err != nil {
			return c, err
		}
		done, err = Do(ctx, f.Client, c, f.ids, By{Origin: f.Origin})
	}
	for pause := firstLook; err == nil && done.Again; pause = min(pause*3/2, slowestLook) {
		if err = idle(ctx, pause); err == nil {
			done, err = Do(ctx, f.Client, c, f.ids, By{Origin: f.Origin})
		}
	}
	if err != nil {
		return c, err
	}
	c.ID, c.EndpointID = done.ID, done.EndpointID
	if c.Action == planning.Delete {
		delete(f.ids, c.Address)
	} else {
		f.ids[c.Address] = done.ID
	}
	if c.Pending() {
		f.Tell.Did(c, done)
	}
	if done.Next == planning.Start {
		c.Action = planning.Start
		return f.one(ctx, c)
	}
	if done.Deployment != nil && c.Declared.Deployment != nil && c.Declared.Deployment.WaitReady.Value {
		err = f.settle(ctx, c, *done.Deployment)
	}
	return c, err
}

// again finds the change of an address in a new plan. It must still be of the same kind:
// what was shown and agreed to is not another thing by then.
func (f *FolderApply) again(ctx context.Context, c planning.Change) (planning.Change, error) {
	changes, err := f.Replan(ctx)
	if err != nil {
		return c, err
	}
	next, ok := changes.Find(c.Address.String())
	if !ok || next.Action != c.Action && next.Action != planning.NoOp {
		return c, fmt.Errorf("now that more is known the plan is another one (%s instead of %s); plan again", next.Action, c.Action)
	}
	f.ids = changes.Bindings()
	return next, nil
}

const (
	firstLook   = 250 * time.Millisecond
	slowestLook = 10 * time.Second
	readyWithin = 30 * time.Minute // of a deployment without a timeout
)

// settle waits until a deployment has what its floor asks for. That the wait ends early
// is told and no failure: the deployment is there and goes on by itself.
func (f *FolderApply) settle(ctx context.Context, c planning.Change, d api.Deployment) error {
	within := c.Declared.Deployment.Timeouts.Create.Value
	if c.Action == planning.Update {
		within = c.Declared.Deployment.Timeouts.Update.Value
	}
	if within <= 0 {
		within = readyWithin
	}
	until, told := time.Now().Add(within), ""
	for pause := firstLook; !Settled(d); pause = min(pause*3/2, slowestLook) {
		now := fmt.Sprintf("%s, %s", strings.TrimPrefix(d.Status.State, "DEPLOYMENT_STATE_"), planning.Count(d.Status.ReadyReplicas, "ready replica"))
		if now != told {
			told = now
			f.Tell.Waits(c, now)
		}
		if time.Now().After(until) {
			f.Tell.Waits(c, fmt.Sprintf("the wait of %s is over; it goes on by itself", within))
			return nil
		}
		if err := idle(ctx, pause); err != nil {
			return err
		}
		next, err := f.Client.GetDeployment(ctx, c.EndpointID, c.ID)
		if err == nil {
			d = next
		} else if !engineclient.IsUnreachable(err) {
			return err
		}
	}
	if d.Status.State == api.DeploymentFailed {
		return fmt.Errorf("deployment %s failed: %s", d.ID, d.Status.Message)
	}
	return nil
}

// await waits for a rollout once.
func (f *FolderApply) await(ctx context.Context, c planning.Change) error {
	if f.waited[c.Address] {
		return nil
	}
	f.waited[c.Address] = true
	if f.Waiting == NoWait || !c.Declared.Rollout.Wait.Value {
		r, err := f.Client.GetRollout(ctx, c.EndpointID, c.ID)
		if err == nil {
			f.runs = append(f.runs, Ended{Change: c, Rollout: r})
		}
		return err
	}
	within, cancel := context.WithTimeout(ctx, f.limit(c))
	defer cancel()
	res, err := f.Client.Await(within, c.EndpointID, c.ID, f.Tell.Rollout(c))
	if err != nil {
		return err
	}
	f.runs = append(f.runs, Ended{Change: c, Rollout: res.Rollout, Outcome: res.Outcome})
	return nil
}

// limit is how long to wait for a rollout: what the plan shows.
func (f *FolderApply) limit(c planning.Change) time.Duration {
	if c.Journey == nil || c.Journey.Totals.WaitLimit <= 0 {
		return planning.DefaultWait(0)
	}
	return c.Journey.Totals.WaitLimit
}

func idle(ctx context.Context, pause time.Duration) error {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
