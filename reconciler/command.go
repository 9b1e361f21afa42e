package reconciler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agext/levenshtein"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Command is one line by which a person steers: in a comment, or at another door.
type Command struct {
	Verb     Verb
	Selector string // endpoint or address; empty when the pull request has one rollout
	Digest   string // of approve: 12 to 64 hex digits in lower case
	Rule     string // of override
	Reason   string
	Line     int    // in the comment, 1-based
	Problem  string // why nothing is done, and what to write instead; Verb is then empty
}

// Bounds of comments and commands. What is beyond is answered and not done.
const (
	longestBody    = 16384 // bytes of a comment: what Markdown can nest grows by the square
	longestLine    = 1500  // bytes of a command
	longestReason  = 1024  // bytes, as the engine takes them
	longestArgued  = 200   // bytes of a selector or a rule
	mostCommands   = 5     // of one comment
	shortestDigest = 12    // hex digits, as plans show them
)

// usage is how a verb is written and what it does.
type usage struct {
	verb    Verb
	takes   argument
	reason  need
	example string
	effect  string
	warning string
}

// argument is what a verb takes before the reason.
type argument int

const (
	takesSelector argument = iota // an endpoint or an address, where there are several
	takesDigest
	takesRule
	takesNothing
)

// need says whether a verb takes a reason.
type need int

const (
	reasonTaken need = iota
	reasonNeeded
)

// usages are all verbs, in the order in which help tells them.
var usages = []usage{
	{verb: Resume, example: "/sluice resume prod/chat", effect: "judges the gate again, or tries the step again; never skips one"},
	{verb: Promote, example: "/sluice promote prod/chat", effect: "skips to the last step", warning: "the gates of the steps between are skipped; the last step runs in full"},
	{verb: Cancel, reason: reasonNeeded, example: "/sluice cancel prod/chat because p95 doubled", effect: "freezes the split that is served, at once, and scales nothing"},
	{verb: Reverse, reason: reasonNeeded, example: "/sluice reverse prod/chat because answers are worse", effect: "cancels, and goes back by a rollout the other way"},
	{verb: Approve, takes: takesDigest, example: "/sluice approve 2b269423920f", effect: "lets the plan of this digest be applied"},
	{verb: Override, takes: takesRule, reason: reasonNeeded, example: "/sluice override first_step because it was rehearsed", effect: "lifts a denial of a policy"},
	{verb: Retry, example: "/sluice retry prod/chat", effect: "lets a rollout that a person canceled start again"},
	{verb: Suspend, example: "/sluice suspend prod/chat because of the audit", effect: "starts nothing more until somebody continues; what runs goes on"},
	{verb: Continue, example: "/sluice continue prod/chat", effect: "ends a suspension"},
	{verb: Replan, example: "/sluice plan", effect: "plans again"},
	{verb: Help, takes: takesNothing, example: "/sluice help", effect: "tells these commands"},
}

// usageOf finds a verb.
func usageOf(v Verb) (usage, bool) {
	i := slices.IndexFunc(usages, func(u usage) bool { return u.verb == v })
	if i < 0 {
		return usage{}, false
	}
	return usages[i], true
}

// NeedsReason reports whether a verb is refused without a reason.
func NeedsReason(v Verb) bool {
	u, _ := usageOf(v)
	return u.reason == reasonNeeded
}

// Effect says what a command does, and what to mind where there is something.
func (c Command) Effect() string {
	u, ok := usageOf(c.Verb)
	switch {
	case !ok:
		return ""
	case u.warning != "":
		return u.effect + "; mind: " + u.warning
	}
	return u.effect
}

// CommandHelp tells all commands as text, one a line.
func CommandHelp() string {
	var b strings.Builder
	for _, u := range usages {
		fmt.Fprintf(&b, "%-52s %s\n", u.example, u.effect)
	}
	return b.String()
}

// nearestVerb is the usage of the verb that differs least from a word.
func nearestVerb(word string) usage {
	best, at := usages[len(usages)-1], 3
	for _, u := range usages {
		if d := levenshtein.Distance(word, string(u.verb), nil); d < at {
			best, at = u, d
		}
	}
	return best
}

// sameInstant is how far apart a forge may note the making of one comment and the first
// storing of it.
const sameInstant = 2 * time.Second

// CommandsOf are the commands of a comment that may act: not one of our own account, and
// not one that was edited, since what stood there when others read it is not known.
func CommandsOf(c forge.Comment) []Command {
	if c.Bot || c.UpdatedAt.Sub(c.At) > sameInstant {
		return nil
	}
	return ParseCommands(c.Body)
}

// Approves reports whether a command approves the plan of a digest ("sha256:…").
func (c Command) Approves(digest string) bool {
	hex := strings.TrimPrefix(digest, "sha256:")
	return c.Verb == Approve && len(c.Digest) >= shortestDigest && len(hex) == 64 && strings.HasPrefix(hex, c.Digest)
}

// Among finds which of some names a command means: the one that it selects, or the only
// one. A name without a slash may be the first word of the reason. The error says what
// there is.
func (c Command) Among(names []string) (Command, error) {
	if c.Selector == "" {
		if first, rest, _ := strings.Cut(c.Reason, " "); slices.Contains(names, first) {
			c.Selector, c.Reason = first, strings.TrimSpace(rest)
		}
	}
	switch {
	case c.Selector == "" && len(names) == 1:
		c.Selector = names[0]
	case c.Selector == "" && len(names) > 1:
		return c, fmt.Errorf("say which: this pull request has %s; for example: /sluice %s %s", strings.Join(names, ", "), c.Verb, names[0])
	case len(names) == 0:
		return c, fmt.Errorf("nothing here can be steered by %s", c.Verb)
	case !slices.Contains(names, c.Selector):
		return c, fmt.Errorf("nothing here is named %q; there is %s", c.Selector, strings.Join(names, ", "))
	}
	if u, ok := usageOf(c.Verb); ok && u.reason == reasonNeeded && c.Reason == "" {
		return c, fmt.Errorf("%s needs a reason: %s", c.Verb, u.example)
	}
	return c, nil
}
