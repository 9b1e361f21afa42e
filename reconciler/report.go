package reconciler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// keepPulls is how long a pull request is listened to after all that it brought is over:
// somebody may want to take it back.
const keepPulls = 7 * 24 * time.Hour

// reportPulls brings the comment and the statuses of every known pull request up to date.
// What has not changed is not written.
func (f *follower) reportPulls(ctx context.Context) error {
	if f.pulls.known == nil {
		return nil
	}
	var errs []error
	for _, number := range sortedNumbers(f.pulls.known) {
		r := f.pulls.known[number]
		if !r.Over.IsZero() && f.now().Sub(r.Over) > keepPulls {
			errs = append(errs, f.forgetPull(ctx, number))
			continue
		}
		if err := f.reportPull(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("pull request %d: %w", number, err))
		}
	}
	return f.noteForge(errors.Join(errs...))
}

// reportPull reports one pull request: the answers, the comment and the statuses, of which
// none waits for another that fails.
func (f *follower) reportPull(ctx context.Context, r *pullRecord) error {
	before := record(pullKey(f.config.Name, r.Number), *r).Value
	var p page
	var err error
	errs := []error{f.sendAnswers(ctx, r)}
	switch r.State {
	case forge.IsOpen:
		p, err = f.openSheet(ctx, r)
	case forge.IsMerged:
		p, err = f.mergedSheet(ctx, r)
	case forge.IsClosed:
		p = page{Sheet: f.closedSheet(r)}
	}
	errs = append(errs, err)
	known := err == nil && p.Stage != "" // without the base it is not, and what was said stands
	if known && (len(p.Stacks) > 0 || r.Body != "" || len(p.Conflicts) > 0 || p.Unmerged != "") {
		errs = append(errs, f.publish(ctx, r, p))
	}
	if known && r.State == forge.IsOpen {
		r.Statuses, err = f.post(ctx, p.Sheet, r.URL, r.Statuses)
		errs = append(errs, err)
	}
	after := record(pullKey(f.config.Name, r.Number), *r)
	if string(before) != string(after.Value) && (len(r.Plans) > 0 || r.Body != "" || len(r.Answers) > 0) {
		errs = append(errs, f.ledger.write(ctx, journal.Batch{Put: []journal.Record{after}}))
	}
	return errors.Join(errs...)
}

// publish makes the comment say what the sheet says, when it says something else.
func (f *follower) publish(ctx context.Context, r *pullRecord, p page) error {
	body := render.Comment(p.Sheet, f.forge.Limits().Comment)
	sum := sha256.Sum256([]byte(body))
	if digest := hex.EncodeToString(sum[:12]); digest != r.Body || f.maybeTouched(r) {
		if err := f.ledger.mayWrite(); err != nil {
			return err
		}
		write := func() error {
			_, err := forge.Upsert(ctx, f.forge, r.Number, p.Marker.String(), body)
			return err
		}
		if err := f.unlessRefused(fmt.Sprintf("comment %d %s", r.Number, digest), write); err != nil {
			return fmt.Errorf("write the comment: %w", err)
		}
		if r.Body != digest {
			f.meters.reports.WithLabelValues(f.config.Name, "comment").Inc()
		}
		r.Body = digest
		f.pulls.checked[r.Number] = f.now()
	}
	r.shows(p, f.now())
	return nil
}

// looksAfter is how often it is looked whether somebody has deleted or changed our comment
// of a pull request that is not over.
const looksAfter = time.Hour

func (f *follower) maybeTouched(r *pullRecord) bool {
	return r.Over.IsZero() && f.now().Sub(f.pulls.checked[r.Number]) >= looksAfter
}

// post writes the statuses of a sheet's commit that are new, one for each endpoint. What
// was posted is remembered by its key and not by its text, so that a clock in a text
// never makes a new one.
func (f *follower) post(ctx context.Context, sheet render.Sheet, url string, was []posted) ([]posted, error) {
	limits, commit := f.forge.Limits(), sheet.Revision.Commit
	out := slices.DeleteFunc(slices.Clone(was), func(p posted) bool { return p.Commit != commit })
	var errs []error
	for _, endpoint := range sheet.Endpoints() {
		name, key := forge.Context(limits.Context, "sluice", f.config.Name, endpoint), fmt.Sprint(render.KeyOf(sheet, endpoint))
		at := slices.IndexFunc(out, func(p posted) bool { return p.Context == name })
		if at >= 0 && out[at].Key == key {
			continue
		}
		if err := f.ledger.mayWrite(); err != nil {
			return out, err
		}
		state, text := render.Status(sheet, endpoint, f.now(), limits.Description)
		write := func() error {
			return f.forge.SetStatus(ctx, commit, forge.Status{Context: name, State: forge.StatusState(state), Text: text, URL: url})
		}
		if err := f.unlessRefused(fmt.Sprintf("status %s %s %s", commit, name, key), write); err != nil {
			err = fmt.Errorf("set status %s of %s: %w", name, short(commit), err)
			if !refusedForGood(err) {
				return out, errors.Join(append(errs, err)...)
			}
			errs = append(errs, err) // that of one endpoint is no reason to withhold the others
			continue
		}
		f.meters.reports.WithLabelValues(f.config.Name, "status").Inc()
		if at >= 0 {
			out[at].Key = key
		} else {
			out = append(out, posted{Commit: commit, Context: name, Key: key})
		}
	}
	return out, errors.Join(errs...)
}

// closedSheet is the end of a pull request that was not merged.
func (f *follower) closedSheet(r *pullRecord) render.Sheet {
	if r.Over.IsZero() {
		r.Over = f.now()
		delete(f.pulls.plans, r.Number)
		delete(f.pulls.failed, r.Number)
	}
	over := render.Over{At: r.Over, Note: "It was closed without a merge: its plan is void, and nothing was changed."}
	if r.Into != "" {
		over.Why, over.Note = "Goes into "+r.Into, "It goes into another branch now: its plan is void, and nothing was changed."
	}
	return render.Sheet{Marker: f.marker(), Stage: render.Closed, Revision: f.revision(r, r.Head), Over: over}
}

func (f *follower) marker() render.Marker {
	return render.Marker{Instance: f.instance, Repository: f.config.Name}
}

func (f *follower) revision(r *pullRecord, commit string) render.Revision {
	return render.Revision{Repository: f.config.Name, Commit: commit, Branch: r.HeadRef, Base: refName(f.source.Now.Ref), BaseCommit: r.Base, URL: r.URL}
}

// longestVerdict bounds what is kept of a headline, in characters.
const longestVerdict = 200

// openSheet plans an open pull request and shows the plan.
func (f *follower) openSheet(ctx context.Context, r *pullRecord) (page, error) {
	at := slices.IndexFunc(f.pulls.open, func(pr forge.PullRequest) bool { return pr.Number == r.Number })
	if at < 0 || f.tree == nil || f.source.Now.State != gitsource.Found {
		return page{}, nil // not listed any more, or nothing to merge it into: the next look tells
	}
	plan, err := f.planPull(ctx, r, f.pulls.open[at])
	if err != nil {
		return page{}, err
	}
	out := page{Sheet: render.Sheet{Marker: f.marker(), Stage: render.Planned, Revision: f.revision(r, plan.head)}}
	if plan.conflict != nil {
		out.Unmerged = plan.conflict.Why
		for _, file := range plan.conflict.Files {
			out.Conflicts = append(out.Conflicts, render.Notice{Path: file, Reason: "both sides changed it"})
		}
	}
	for _, no := range plan.refused {
		out.Refused = append(out.Refused, render.Notice{Path: no.Path, Reason: no.Reason})
	}
	for _, s := range plan.stacks {
		out.Stacks = append(out.Stacks, f.stackSheet(s.c, s.plan, s.diff, r.Overrides))
		out.plans = append(out.plans, pullPlan{Stack: s.c.Name, Digest: s.plan.digest})
	}
	f.sheetApproval(&out.Sheet, r)
	for i := len(r.History) - 1; i >= 0; i-- {
		h := r.History[i]
		out.History = append(out.History, render.Push{Commit: h.Commit, Digest: h.Digest, At: h.At, Verdict: h.Verdict})
	}
	r.Verdict = clip(out.Headline(), longestVerdict)
	return out, nil
}

// sheetApproval says what lets the plan be applied.
func (f *follower) sheetApproval(out *render.Sheet, r *pullRecord) {
	out.Approval = render.Approval{Mode: render.ByMerge, File: approvalsFile, May: Grantees(f.permissions().Of(Approve))}
	if f.config.Approval == ApproveByDigest {
		out.Approval.Mode = render.ByDigest
	}
	for _, p := range r.Plans {
		if p.Digest == "" {
			continue
		}
		a := render.PlanApproval{Stack: p.Stack, Digest: p.Digest}
		for _, g := range r.Approved {
			if g.Digest == p.Digest {
				a.Granted = append(a.Granted, render.Granted{By: g.Who, How: g.Via, At: g.At})
			}
		}
		if n := len(r.Approved); n > 0 && len(a.Granted) == 0 {
			a.Void = "it was given for another plan; what was approved has changed since"
		}
		out.Approval.Plans = append(out.Approval.Plans, a)
	}
}

// reportRuns keeps the statuses of the commits that are applied, one for each endpoint:
// those of a run are written on its own commit and on no other, whatever came later.
func (f *follower) reportRuns(ctx context.Context) error {
	var errs []error
	for _, c := range f.config.Stacks {
		k := f.key(c.Name)
		s, err := read[stackRecord](ctx, f.ledger, stackKey(k))
		if err != nil {
			return err
		}
		commits := slices.Clone(s.Open)
		if n := len(s.Recent); n > 0 {
			commits = append(commits, s.Recent[n-1]) // its last word
		}
		for _, commit := range commits {
			if err := f.reportRun(ctx, k, commit); err != nil {
				errs = append(errs, fmt.Errorf("stack %s, commit %s: %w", k, short(commit), err))
			}
		}
	}
	return errors.Join(errs...)
}

// reportRun posts the statuses of one run. They are kept in a record of their own, which
// only the reports write.
func (f *follower) reportRun(ctx context.Context, k StackKey, commit string) error {
	run, err := read[runRecord](ctx, f.ledger, runKey(k, commit))
	if err != nil || run.Commit.ID == "" || len(run.Rollouts) == 0 {
		return err
	}
	key := journal.Key{Kind: kindPosted, Repository: k.Repository, Stack: k.Stack, Name: commit}
	was, err := read[[]posted](ctx, f.ledger, key)
	if err != nil {
		return err
	}
	sheet, err := f.runSheet(ctx, k.Stack, run)
	if err != nil {
		return err
	}
	out := render.Sheet{Marker: f.marker(), Stage: render.Following, Revision: render.Revision{Repository: f.config.Name, Commit: commit}, Stacks: []render.StackSheet{sheet}}
	now, perr := f.post(ctx, out, "", was)
	if slices.Equal(was, now) {
		return perr
	}
	return errors.Join(perr, f.ledger.write(ctx, journal.Batch{Put: []journal.Record{record(key, now)}}))
}

func sortedNumbers[V any](m map[int]V) []int {
	out := make([]int, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
