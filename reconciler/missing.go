package reconciler

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// resolve finds the followed ref. One that is not there and never was may be a typing
// error: the reason then names what was meant.
func (f *follower) resolve(refs gitsource.Refs, before gitsource.Seen) gitsource.Resolved {
	to := before.Known(f.config.Wanted.Resolve(refs))
	wanted := cmp.Or(f.config.Wanted.Branch, f.config.Wanted.Tag)
	if to.State != gitsource.Missing || before.Last.Commit != "" || wanted == "" {
		return to
	}
	kind := "refs/heads/"
	if f.config.Wanted.Tag != "" {
		kind = "refs/tags/"
	}
	var names []string
	for ref := range refs.Commits {
		if name, ok := strings.CutPrefix(ref, kind); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if hint := declaration.Nearest(strings.TrimPrefix(wanted, kind), names); hint != "" {
		to.Reason += "; " + hint
	}
	return to
}

// unfollowed reports whether a repository has no commit to follow although there are
// some, or were: a mistake, and nothing that the next pass could find otherwise. One
// without a commit yet is waited for.
func (r RepositoryStatus) unfollowed() bool {
	return r.State == string(gitsource.Missing) || r.State == string(gitsource.NoMatch)
}
