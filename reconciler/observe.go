package reconciler

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// mostCommits is how far a stretch of history is told.
const mostCommits = 200

// observe lists the refs and records what is new about the followed one. Objects are not
// fetched here.
func (f *follower) observe(ctx context.Context) error {
	refs, err := f.remote.Refs(ctx)
	if err != nil {
		return fmt.Errorf("list the refs of %s: %w", f.config.Name, err)
	}
	before, err := read[sourceRecord](ctx, f.ledger, sourceKey(f.config))
	if err != nil {
		return err
	}
	to := f.resolve(refs, before.Seen)
	happened, err := f.happened(ctx, before.Seen, to)
	if err != nil {
		return err
	}
	after := before
	after.Seen, after.Redirect = before.Next(to), refs.Moved
	f.source = after
	quiet := happened == gitsource.Unchanged && before.Now.State == to.State && before.Redirect == refs.Moved
	if quiet && before.Now.Reason == to.Reason {
		return nil
	}
	if happened != gitsource.Unchanged {
		after.Happened, after.At, after.From = happened, f.now(), before.Last.Commit
	}
	f.source = after
	b := journal.Batch{Put: []journal.Record{record(sourceKey(f.config), after)}}
	if !quiet { // another reason for the same is seen in the status
		f.tellSource(&b, before, after, happened)
	}
	return f.ledger.write(ctx, b)
}

// happened compares a ref with what it was. History is asked for only where the answer
// depends on it; when the old commit is not there any more, it was rewritten.
func (f *follower) happened(ctx context.Context, before gitsource.Seen, to gitsource.Resolved) (gitsource.Happening, error) {
	if !before.AsksHistory(to) {
		return gitsource.Compare(before, to, gitsource.Unasked), nil
	}
	log, err := f.remote.Log(ctx, before.Last.Commit, to.Commit, mostCommits)
	var gone *gitsource.Gone
	if errors.As(err, &gone) && gone.Commit != to.Commit {
		log.Rewritten, err = true, nil
	}
	if err != nil { // also when the ref moved once more: the next poll sees it
		return "", fmt.Errorf("read the history of %s: %w", f.config.Name, err)
	}
	if log.Rewritten {
		return gitsource.Compare(before, to, gitsource.NotAncestor), nil
	}
	return gitsource.Compare(before, to, gitsource.Ancestor), nil
}

// tellSource puts what is new about a ref into a batch: a line of history, and for what
// a person should know an event.
func (f *follower) tellSource(b *journal.Batch, before, after sourceRecord, happened gitsource.Happening) {
	old, now := before.Last, after.Now
	e := happening{Kind: "source." + strings.ReplaceAll(string(happened), " ", "_"), Commit: now.Commit, Severity: info}
	switch happened {
	case gitsource.FirstSeen:
		e.Text = fmt.Sprintf("%s is first seen at %s", refName(now.Ref), short(now.Commit))
		if now.State != gitsource.Found {
			e.Text = now.Reason
		}
	case gitsource.Advanced:
		e.Text = fmt.Sprintf("%s went from %s to %s", refName(now.Ref), short(old.Commit), short(now.Commit))
	case gitsource.Rewritten:
		e.Text, e.Severity = fmt.Sprintf("history of %s was rewritten: %s→%s", refName(now.Ref), short(old.Commit), short(now.Commit)), warning
	case gitsource.TagMoved:
		e.Text, e.Severity = fmt.Sprintf("tag %s was moved: %s→%s. What it asks for now needs an approval", refName(now.Ref), short(old.Commit), short(now.Commit)), warning
	case gitsource.Deleted:
		e.Text, e.Severity = now.Reason+". Nothing is changed at the engine; what runs is watched on", warning
	case gitsource.Restored:
		e.Text = fmt.Sprintf("%s is back at %s", refName(now.Ref), short(now.Commit))
	case gitsource.Unchanged:
		e.Text = now.Reason
		if before.Redirect != after.Redirect {
			e.Kind, e.Severity = "source.renamed", warning
			e.Text = fmt.Sprintf("%s answers at %s now. It is followed there; put the new address into the configuration", redacted(f.config.URL), after.Redirect)
		}
	}
	e.Key = []string{f.config.Name, string(happened), now.Ref, string(now.State), old.Commit, now.Commit, now.Tag, after.Redirect}
	f.tell(b, e)
}
