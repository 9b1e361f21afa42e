package reconciler

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// tracedForge makes a span of each call to a forge.
type tracedForge struct {
	forge.Forge
	spans
	repository string
}

const (
	reads  = "read"
	writes = "write"
)

func (f tracedForge) call(ctx context.Context, access, name string, do func(context.Context) error, about ...attribute.KeyValue) error {
	return f.within(ctx, "forge "+access, do, append(about, ofRepository.String(f.repository), ofCall.String(name), ofAccess.String(access))...)
}

// asked is a call that answers something.
func asked[T any](ctx context.Context, f tracedForge, access, name string, do func(context.Context) (T, error), about ...attribute.KeyValue) (out T, err error) {
	err = f.call(ctx, access, name, func(ctx context.Context) error {
		out, err = do(ctx)
		return err
	}, about...)
	return out, err
}

// Repository reads the repository itself.
func (f tracedForge) Repository(ctx context.Context) (forge.Repository, error) {
	return asked(ctx, f, reads, "repository", f.Forge.Repository)
}

// Open lists the open pull requests.
func (f tracedForge) Open(ctx context.Context, base string) ([]forge.PullRequest, error) {
	return asked(ctx, f, reads, "open", func(ctx context.Context) ([]forge.PullRequest, error) { return f.Forge.Open(ctx, base) })
}

// Closed lists those that ended.
func (f tracedForge) Closed(ctx context.Context, base string, since time.Time) ([]forge.PullRequest, error) {
	return asked(ctx, f, reads, "closed", func(ctx context.Context) ([]forge.PullRequest, error) { return f.Forge.Closed(ctx, base, since) })
}

// PullRequest reads one.
func (f tracedForge) PullRequest(ctx context.Context, number int) (forge.PullRequest, error) {
	return asked(ctx, f, reads, "pull request", func(ctx context.Context) (forge.PullRequest, error) { return f.Forge.PullRequest(ctx, number) }, ofPull.Int(number))
}

// Files lists the paths that one touches.
func (f tracedForge) Files(ctx context.Context, number int) ([]string, error) {
	return asked(ctx, f, reads, "files", func(ctx context.Context) ([]string, error) { return f.Forge.Files(ctx, number) }, ofPull.Int(number))
}

// Comments lists what was said on one.
func (f tracedForge) Comments(ctx context.Context, number int, since time.Time) ([]forge.Comment, error) {
	return asked(ctx, f, reads, "comments", func(ctx context.Context) ([]forge.Comment, error) { return f.Forge.Comments(ctx, number, since) }, ofPull.Int(number))
}

// Comment makes one.
func (f tracedForge) Comment(ctx context.Context, number int, body string) (forge.Comment, error) {
	return asked(ctx, f, writes, "comment", func(ctx context.Context) (forge.Comment, error) { return f.Forge.Comment(ctx, number, body) }, ofPull.Int(number))
}

// EditComment replaces the text of one.
func (f tracedForge) EditComment(ctx context.Context, number int, id int64, body string) error {
	return f.call(ctx, writes, "edit comment", func(ctx context.Context) error { return f.Forge.EditComment(ctx, number, id, body) }, ofPull.Int(number))
}

// React answers a comment with a sign.
func (f tracedForge) React(ctx context.Context, number int, comment int64, sign forge.Sign) error {
	return f.call(ctx, writes, "react", func(ctx context.Context) error { return f.Forge.React(ctx, number, comment, sign) }, ofPull.Int(number))
}

// Reviews lists the verdicts of reviewers.
func (f tracedForge) Reviews(ctx context.Context, number int) ([]forge.Review, error) {
	return asked(ctx, f, reads, "reviews", func(ctx context.Context) ([]forge.Review, error) { return f.Forge.Reviews(ctx, number) }, ofPull.Int(number))
}

// Statuses lists those of a commit.
func (f tracedForge) Statuses(ctx context.Context, commit string) ([]forge.Status, error) {
	return asked(ctx, f, reads, "statuses", func(ctx context.Context) ([]forge.Status, error) { return f.Forge.Statuses(ctx, commit) }, ofCommit.String(commit))
}

// SetStatus adds one.
func (f tracedForge) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	return f.call(ctx, writes, "set status", func(ctx context.Context) error { return f.Forge.SetStatus(ctx, commit, s) }, ofCommit.String(commit))
}

// Role is what a user may do.
func (f tracedForge) Role(ctx context.Context, user string) (forge.Role, error) {
	return asked(ctx, f, reads, "role", func(ctx context.Context) (forge.Role, error) { return f.Forge.Role(ctx, user) })
}

// Teams are those of some names that a user is a member of.
func (f tracedForge) Teams(ctx context.Context, user string, of []string) ([]string, error) {
	return asked(ctx, f, reads, "teams", func(ctx context.Context) ([]string, error) { return f.Forge.Teams(ctx, user, of) })
}
