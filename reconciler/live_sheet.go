package reconciler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// mostEvents is how many lines of a rollout's feed a comment has.
const mostEvents = 40

// mergedSheet follows what a merged pull request brought, to its receipts.
func (f *follower) mergedSheet(ctx context.Context, r *pullRecord) (page, error) {
	out := page{Sheet: render.Sheet{Marker: f.marker(), Stage: render.Following, Revision: f.revision(r, r.MergeCommit)}}
	if r.Strayed = r.Strayed || f.strayed(ctx, r); r.Strayed {
		return f.strayedSheet(r, out), nil
	}
	over := true
	for _, p := range r.Plans {
		run, found, err := f.runOf(ctx, p.Stack, r.Number)
		if err != nil {
			return out, err
		}
		if !found && !f.isStack(p.Stack) {
			continue // it was taken out of the configuration, and comes to nothing any more
		}
		if !found {
			passed, err := f.passed(ctx, p.Stack, r.MergeCommit)
			if err != nil {
				return out, err
			}
			if !passed {
				over = false
				out.Waiting = append(out.Waiting, "Merged as "+short(r.MergeCommit)+"; stack "+p.Stack+" has not come to it yet.")
			} else if err := f.overtaken(ctx, p.Stack, r.MergeCommit, &out.Sheet); err != nil {
				return out, err
			}
			continue
		}
		sheet, err := f.runSheet(ctx, p.Stack, run)
		if err != nil {
			return out, err
		}
		out.Stacks = append(out.Stacks, sheet)
		out.plans = append(out.plans, pullPlan{Stack: p.Stack, Digest: run.Digest})
		if p.Digest != "" && run.Digest != "" && p.Digest != run.Digest {
			out.Remarks = append(out.Remarks, fmt.Sprintf("Stack %s was planned again at the merge as %s. That is another plan than %s, which stood here before: what it depends on has changed in between.", p.Stack, planning.ShortDigest(run.Digest), planning.ShortDigest(p.Digest)))
		}
		if run.Ended.IsZero() {
			over = false
			for _, w := range run.Waits {
				out.Waiting = append(out.Waiting, w.What)
			}
		}
		if run.Phase == Superseded && len(run.Rollouts) == 0 {
			out.Over = render.Over{By: run.By, At: run.Ended, Note: "A newer commit has taken its place before anything was started."}
			out.Stage = render.Superseded
		}
	}
	if r.Unseen && len(r.Plans) == 0 && f.now().Sub(r.Opened) < time.Hour {
		over = false // its run may still come
	}
	if over && r.Over.IsZero() {
		r.Over = f.now()
	}
	return out, nil
}

// overtaken tells of a merge that a newer commit has overtaken before it was looked at.
func (f *follower) overtaken(ctx context.Context, stack, commit string, out *render.Sheet) error {
	s, err := read[stackRecord](ctx, f.ledger, stackKey(f.key(stack)))
	for _, k := range s.Skipped {
		if k.Commit.ID == commit {
			out.Stage, out.Over = render.Superseded, render.Over{By: k.By, At: k.At, Note: "A newer commit has taken its place before it was looked at."}
		}
	}
	return err
}

// passed reports whether a stack has come to or past a commit without making a run of it:
// it asked for nothing there.
func (f *follower) passed(ctx context.Context, stack, commit string) (bool, error) {
	s, err := read[stackRecord](ctx, f.ledger, stackKey(f.key(stack)))
	if err != nil || s.Newest.ID == "" || commit == "" {
		return false, err
	}
	if s.Newest.ID == commit {
		return len(s.Queue) == 0, nil
	}
	log, err := f.remote.Log(ctx, commit, s.Newest.ID, mostCommits)
	if err != nil {
		return false, nil //nolint:nilerr // it is asked again at the next pass
	}
	return !log.Rewritten && len(s.Queue) == 0, nil
}

// runOf finds the run that a pull request's merge has begun.
func (f *follower) runOf(ctx context.Context, stack string, number int) (runRecord, bool, error) {
	k := f.key(stack)
	s, err := read[stackRecord](ctx, f.ledger, stackKey(k))
	if err != nil {
		return runRecord{}, false, err
	}
	commits := slices.Concat(s.Recent, s.Open)
	for _, commit := range slices.Backward(commits) {
		run, err := read[runRecord](ctx, f.ledger, runKey(k, commit))
		if err != nil {
			return run, false, err
		}
		if slices.Contains(run.Pulls, number) {
			return run, true, nil
		}
	}
	return runRecord{}, false, nil
}

// runSheet is a run as the comment shows it. What an engine says of a rollout is read
// again only when something about it is new.
func (f *follower) runSheet(ctx context.Context, stack string, run runRecord) (render.StackSheet, error) {
	out := render.StackSheet{Name: stack}
	if run.Error != "" {
		out.Problem = run.Error
	}
	for _, o := range run.Overrides {
		out.Overrides = append(out.Overrides, render.Override{Rule: o.Rule, By: o.Who, Reason: o.Reason, At: o.At})
	}
	for _, d := range run.Done {
		out.Changes = append(out.Changes, render.Change{Address: d.Address, Action: d.Action, ID: d.ID})
	}
	first := ""
	for _, r := range run.Rollouts {
		shown, err := f.shownRollout(ctx, r)
		if err != nil {
			return out, err
		}
		sheet := render.RolloutSheet{Address: r.Address, Endpoint: r.Endpoint, Journey: shown.journey, Run: &render.Run{
			Rollout: shown.live, Events: shown.events, Names: shown.names, Requests: r.Requests, NonOK: r.Failed,
		}}
		for _, a := range run.Approved {
			if a.Digest == run.Digest {
				sheet.Run.Approved = append(sheet.Run.Approved, render.Granted{By: a.Who, How: a.Via, At: a.At})
			}
		}
		for _, s := range r.Steered {
			sheet.Run.Steered = append(sheet.Run.Steered, render.Steer{By: s.Who, Verb: string(s.Verb), Reason: s.Reason, At: s.At})
		}
		if r.Reverse {
			sheet.Address, sheet.Reverses = "", first
		}
		first = r.ID
		out.Rollouts = append(out.Rollouts, sheet)
	}
	return out, nil
}

// mostShown bounds how many rollouts are kept as they were shown.
const mostShown = 200

// shownRollout is what a comment shows of a rollout.
type shownRollout struct {
	moment  moment
	phase   string
	live    api.Rollout
	events  []api.Event
	names   map[string]string
	journey planning.Journey
}

// shownRollout reads a rollout and its feed, once for each moment and phase.
func (f *follower) shownRollout(ctx context.Context, r runRollout) (*shownRollout, error) {
	if was := f.shown[r.ID]; was != nil && was.moment == r.moment() && was.phase == r.Phase {
		return was, nil
	}
	out := &shownRollout{moment: r.moment(), phase: r.Phase, names: map[string]string{}}
	live, err := f.engine.GetRollout(ctx, r.EndpointID, r.ID)
	if engineclient.IsNotFound(err) {
		if was := f.shown[r.ID]; was != nil {
			return was, nil
		}
		live = api.Rollout{ID: r.ID, EndpointID: r.EndpointID, State: api.PrefixRolloutState + r.State}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	out.live = live
	for e, err := range f.engine.Events(ctx, r.EndpointID, engineclient.EventQuery{SubjectID: r.ID, PageSize: mostEvents}) {
		if err != nil || len(out.events) >= mostEvents {
			break // the feed is an ornament: without it the comment still says all that matters
		}
		out.events = append(out.events, e)
	}
	for _, id := range []string{live.SourceDeploymentID, live.TargetDeploymentID} {
		if d, err := f.engine.GetDeployment(ctx, r.EndpointID, id); err == nil {
			out.names[id] = planning.BareName(d.Name)
		}
	}
	if len(f.shown) >= mostShown {
		clear(f.shown) // they are read again as they are needed
	}
	f.shown[r.ID] = out
	return out, nil
}
