package reconciler

import (
	"fmt"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// EventKind is a kind of events, and when it is told.
type EventKind struct{ Kind, Doc string }

// EventKinds are all kinds that are told, by families. A notify block may name these, or
// a family by "family.*". Tests hold them to what the code tells and to docs/reconcile.md.
var EventKinds = []EventKind{
	{kindParked, "a rollout waits for a person; told again every `remind`"},
	{"rollout.pending", "a rollout waits at the engine for its start"},
	{"rollout.running", "a rollout runs; told at each step"},
	{"rollout.stabilizing", "a rollout has all the traffic and is watched to its end"},
	{"rollout.pausing", "a person's pause is being done"},
	{"rollout.cancelling", "a cancel is being done"},
	{"rollout.canceled", "a rollout was canceled; the split stays"},
	{"rollout.completed", "a rollout has ended well"},
	{"rollout.reversing", "a person's reverse has begun"},
	{"rollout.deleted", "the record of a rollout was deleted at the engine"},

	{"stack.in_step", "live is what Git says"},
	{"stack.waiting", "a stack waits, for what the text says"},
	{"stack.applying", "changes are being made"},
	{"stack.rolling_out", "a rollout is under way"},
	{"stack.parked", "a rollout of the stack is parked"},
	{"stack.ahead_of_git", "a person canceled or took back what Git asks for"},
	{"stack.invalid", "the files cannot be planned"},
	{"stack.failed", "the engine refused something"},

	{"run.began", "a commit is taken up"},
	{"run.finished", "a commit is done"},
	{"run.superseded", "a newer commit has taken the place of one"},

	{"apply.create", "a thing was made"},
	{"apply.start", "a rollout that was made was started"},
	{"apply.steer", "a rollout was steered as Git asks"},
	{"apply.update", "a thing was changed"},
	{"apply.replace", "a thing was replaced"},
	{"apply.delete", "a thing was deleted"},
	{"apply.taken_in", "a thing stood already and is taken in"},
	{"apply.gone", "a thing is neither declared nor there any more"},
	{"apply.handed_over", "a thing is declared by another stack now, and is left to it"},

	{"asked.resume", "what became of a person's resume"},
	{"asked.promote", "what became of a promote"},
	{"asked.cancel", "what became of a cancel"},
	{"asked.reverse", "what became of a reverse"},
	{"asked.approve", "what became of an approval"},
	{"asked.override", "what became of an override"},
	{"asked.retry", "what became of a retry"},
	{"asked.suspend", "what became of a suspend"},
	{"asked.continue", "what became of a continue"},
	{"asked.plan", "what became of a wish for a new plan"},

	{"drift.seen", "live is not what Git says, and Git has not made it so"},

	{"source.first_seen", "the ref is seen for the first time, or is not there at the first look"},
	{"source.advanced", "the ref went on to another commit"},
	{"source.history_rewritten", "a branch was forced to a commit that does not follow the old one"},
	{"source.tag_moved", "a tag was moved"},
	{"source.deleted", "the ref is not there any more"},
	{"source.restored", "the ref is back"},
	{"source.unchanged", "the ref is still not there, for another reason"},
	{"source.renamed", "the repository answers at another address"},
}

// kindRecovered is a line of history and no event: an intent of a process that died.
const kindRecovered = "recovered"

// toldAs reports whether a kind, or one of a family ("rollout.*"), is ever told.
func toldAs(pattern string) bool {
	for _, k := range EventKinds {
		if (notify.Destination{Events: []string{pattern}}).Wants(k.Kind) {
			return true
		}
	}
	return false
}

// kindPatterns are all that may stand for kinds: each, and each family.
func kindPatterns() []string {
	var out []string
	last := ""
	for _, k := range EventKinds {
		if family, _, _ := strings.Cut(k.Kind, "."); family != last {
			out, last = append(out, family+".*"), family
		}
		out = append(out, k.Kind)
	}
	return out
}

// kindHint tells which kind was meant, or which there are.
func kindHint(pattern string) string {
	if hint := declaration.Nearest(pattern, kindPatterns()); hint != "" {
		return hint
	}
	var same, families []string
	asked, _, _ := strings.Cut(pattern, ".")
	for _, p := range kindPatterns() {
		family, rest, _ := strings.Cut(p, ".")
		if rest == "*" {
			families = append(families, p)
		} else if family == asked {
			same = append(same, p)
		}
	}
	if len(same) > 0 {
		return fmt.Sprintf("there are %s", strings.Join(same, ", "))
	}
	return fmt.Sprintf("there are %s; docs/reconcile.md tells each kind", strings.Join(families, ", "))
}
