package reconciler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// said is what a person has said for a run's plan as it is now, by a comment, a review or
// a key. On a pull request of somebody else an author's word for their own changes is none,
// also when it was given before both were merged.
func (p *stackPass) said(run *runRecord) *approval {
	for i := range run.Approved {
		if a := &run.Approved[i]; a.Digest == run.Digest && (a.byKey() || !p.ownWork(run, a.Who)) {
			return a
		}
	}
	return nil
}

// byKey reports whether an approval came by the HTTP door: a key is never a user of the forge.
func (a approval) byKey() bool { return a.Via == viaHTTP }

// approved is the approval of a run's plan as it is now, from wherever it came. The file
// names the whole digest, since it stands there for plans to come, too. It counts where the repository asks for approvals as such: whoever can push can write it, so
// it lifts neither the guard of prune nor what a moved tag asks for.
func (p *stackPass) approved(run *runRecord) *approval {
	if a := p.said(run); a != nil || run.NeedsWord != "" {
		return a
	}
	if p.folder != nil && slices.ContainsFunc(p.folder.Approvals, func(w string) bool { return wholeDigest(w) == run.Digest }) {
		return &approval{Digest: run.Digest, Who: inert(p.folder.Commit.Author), Via: "file " + approvalsFile, At: p.folder.Commit.At}
	}
	return nil
}

// wholeDigest is a word as a digest is written in full.
func wholeDigest(word string) string { return "sha256:" + strings.TrimPrefix(word, "sha256:") }

// unapproved is the wait for a person's word about the plan.
func (p *stackPass) unapproved(run *runRecord) (Wait, bool) {
	why := run.NeedsWord
	if p.config.Approval == ApproveByDigest && why == "" {
		why = "the repository asks for it"
	}
	if why == "" || p.approved(run) != nil {
		return Wait{}, false
	}
	what := fmt.Sprintf("plan %s needs an approval, since %s", planning.ShortDigest(run.Digest), why)
	if n := len(run.Approved); n > 0 {
		old := run.Approved[n-1]
		void := "what it was given for has changed since"
		if old.Digest == run.Digest {
			void = "they are an author of it"
		}
		what += fmt.Sprintf(". The approval of %s by %s is void: %s", planning.ShortDigest(old.Digest), inert(old.Who), void)
	}
	if i := slices.IndexFunc(p.folder.Approvals, func(w string) bool { return digestMeans(w, run.Digest) }); i >= 0 && why != run.NeedsWord {
		what += fmt.Sprintf(". %s has %s, and takes the whole digest, %s", approvalsFile, inert(p.folder.Approvals[i]), run.Digest)
	}
	what += ". Approve it: " + p.way(Approve, planning.ShortDigest(run.Digest))
	return Wait{For: ForApproval, What: what}, true
}

// digestMeans reports whether a person's word names a digest: all of it or its first 12
// hex digits and more.
func digestMeans(word, digest string) bool {
	word, digest = strings.TrimPrefix(word, "sha256:"), strings.TrimPrefix(digest, "sha256:")
	return len(word) >= 12 && strings.HasPrefix(digest, word)
}
