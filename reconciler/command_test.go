package reconciler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

func TestCommandsAreReadFromTheLinesOfAComment(t *testing.T) {
	body := "Thanks, looks good.\n\n/sluice resume\n/sluice cancel prod/chat because of p95\n\nand also\n/sluice approve sha256:2B269423920F at last\r\n/sluice Override \"first step\" prod is idle\n"
	require.Equal(t, []Command{
		{Verb: Resume, Line: 3},
		{Verb: Cancel, Selector: "prod/chat", Reason: "because of p95", Line: 4},
		{Verb: Approve, Digest: "2b269423920f", Reason: "at last", Line: 7},
		{Verb: Override, Rule: "first step", Reason: "prod is idle", Line: 8},
	}, ParseCommands(body))
}

func TestSelectorsAndReasons(t *testing.T) {
	for line, want := range map[string]Command{
		"/sluice plan":                                         {Verb: Replan},
		"/sluice help me please":                               {Verb: Help},
		"/sluice   promote   prod/chat   now  ":                {Verb: Promote, Selector: "prod/chat", Reason: "now"},
		"/sluice reverse sluice_rollout.chat[\"a\"] worse":     {Verb: Reverse, Selector: `sluice_rollout.chat["a"]`, Reason: "worse"},
		"/sluice retry sluice_rollout.chat[\"eu west\"] again": {Verb: Retry, Selector: `sluice_rollout.chat["eu west"]`, Reason: "again"},
		"/sluice cancel \"chat\" since it is slow":             {Verb: Cancel, Selector: "chat", Reason: "since it is slow"},
		"/sluice cancel prod/chat: since it is slow":           {Verb: Cancel, Selector: "prod/chat", Reason: "since it is slow"},
		"/sluice cancel rol_2a65b00b8beb slow":                 {Verb: Cancel, Selector: "rol_2a65b00b8beb", Reason: "slow"},
		"/sluice cancel it is slow; rm -rf / `x` @team":        {Verb: Cancel, Reason: "it is slow; rm -rf / `x` @team"},
		"/sluice\tsuspend":                                     {Verb: Suspend},
		"/sluice continue prod/chat":                           {Verb: Continue, Selector: "prod/chat"},
		"/sluice retry":                                        {Verb: Retry},
		"/sluice approve `2b269423920f`":                       {Verb: Approve, Digest: "2b269423920f"},
	} {
		want.Line = 1
		require.Equal(t, []Command{want}, ParseCommands(line), line)
	}
}

// What talks about a command is none (K11, G5).
func TestQuotesCodeAndListsNeverAct(t *testing.T) {
	for _, body := range []string{
		"> /sluice cancel x", "> quoted\n/sluice cancel by a lazy quote", ">> a\n> /sluice cancel x", "```\n/sluice cancel x\n```", "~~~~\n```\n/sluice cancel x\n~~~~", "````\n/sluice cancel x",
		"    /sluice cancel x", " /sluice cancel x", "\t/sluice cancel x", "- /sluice cancel x", "1. a\n/sluice cancel x", "# /sluice cancel x", "<!--\n/sluice cancel x\n-->", "a <!--\n/sluice cancel x\n-->",
		"<details>\n/sluice cancel x\n</details>", "a `b\n/sluice cancel x\n` c", "*a\n/sluice cancel x\nb*", "[a\n/sluice cancel x](https://x.example)", "| a |\n|---|\n/sluice cancel x",
		"please /sluice cancel x", "/sluices cancel x", "/sluice-cancel x", "//sluice cancel x", "/Sluice cancel x", "/ѕluice cancel x", "", "/sluic", "[a]: /sluice\n", "/sluice cancel x\n===",
	} {
		require.Empty(t, ParseCommands(body), "%q", body)
	}
}

func TestAMistakenCommandIsAnsweredWithTheNearestVerb(t *testing.T) {
	for line, want := range map[string]string{
		"/sluice":                                     "the command has no verb; for example: /sluice help",
		"/sluice cancle prod/chat slow":               `there is no verb "cancle"; did you mean cancel?; for example: /sluice cancel prod/chat because p95 doubled`,
		"/sluice rm -rf /":                            `there is no verb "rm"; did you mean help?; for example: /sluice help`,
		"/sluice \u0441ancel prod/chat slow":          `there is no verb "\u0441ancel": it has letters that only look like those of a verb; for example: /sluice cancel prod/chat because p95 doubled`,
		"/sluice\u00a0cancel prod/chat slow":          "the command has the character U+00A0, which cannot be seen or looks like another; for example: /sluice help",
		"/sluice cancel prod/chat \u202eslow":         "the command has the character U+202E, which cannot be seen or looks like another; for example: /sluice help",
		"/sluice cancel prod/chat":                    "cancel needs a reason; for example: /sluice cancel prod/chat because p95 doubled",
		"/sluice reverse":                             "reverse needs a reason; for example: /sluice reverse prod/chat because answers are worse",
		"/sluice override first_step":                 "override needs a reason; for example: /sluice override first_step because it was rehearsed",
		"/sluice override":                            "override needs the name of the rule, which stands in brackets behind a denial; for example: /sluice override first_step because it was rehearsed",
		"/sluice approve":                             "approve needs the digest of the plan, as the comment above shows it; for example: /sluice approve 2b269423920f",
		"/sluice approve 2b26":                        "approve needs the digest of the plan: 12 to 64 hex digits; for example: /sluice approve 2b269423920f",
		"/sluice approve all of it":                   "approve needs the digest of the plan: 12 to 64 hex digits; for example: /sluice approve 2b269423920f",
		`/sluice cancel "prod/chat slow`:              `a quoted name does not end: a " is missing; for example: /sluice cancel prod/chat because p95 doubled`,
		`/sluice cancel "" slow`:                      "a quoted name is empty; for example: /sluice cancel prod/chat because p95 doubled",
		`/sluice cancel "a"b slow`:                    "a quoted name is followed by a space; for example: /sluice cancel prod/chat because p95 doubled",
		"/sluice cancel " + strings.Repeat("x ", 600): "the reason is longer than 1024 bytes; for example: /sluice cancel prod/chat because p95 doubled",
		"/sluice cancel " + strings.Repeat("x", 2000): "the command is longer than 1500 bytes; for example: /sluice help",
	} {
		require.Equal(t, []Command{{Line: 1, Problem: want}}, ParseCommands(line), line)
	}
}

func TestMoreThanFiveCommandsInOneCommentAreNotDone(t *testing.T) {
	require.Len(t, ParseCommands(strings.Repeat("/sluice resume\n", 5)), 5)
	got := ParseCommands("x\n\n" + strings.Repeat("/sluice resume\n", 6))
	require.Len(t, got, 1)
	require.Equal(t, Command{Line: 3, Problem: "there are 6 commands in this comment, and at most 5 are taken: none was done; write fewer"}, got[0])
}

func TestACommandInATooLongCommentIsAnsweredAndNotDone(t *testing.T) {
	log := strings.Repeat("x\n", longestBody/2)
	require.Empty(t, ParseCommands(log+"> /sluice resume\n and /sluice resume\n"))
	want := []Command{{Line: longestBody/2 + 1, Problem: "this comment is longer than 16384 bytes and no command in it was done; write the command in a comment of its own"}}
	require.Equal(t, want, ParseCommands(log+"/sluice cancel prod/chat because it is slow\r\n/sluice resume\n"))
}

// An edited comment and one of our own account never act; quoting is tried above.
func TestEditedCommentsAndOurOwnNeverAct(t *testing.T) {
	at := time.Date(2026, 9, 16, 20, 0, 0, 0, time.UTC)
	c := forge.Comment{Body: "/sluice resume", At: at, UpdatedAt: at.Add(time.Second)}
	require.Len(t, CommandsOf(c), 1)
	c.UpdatedAt = time.Time{}
	require.Len(t, CommandsOf(c), 1, "a forge that tells no time of an edit")
	c.UpdatedAt = at.Add(3 * time.Second)
	require.Empty(t, CommandsOf(c))
	c.UpdatedAt, c.Bot = at, true
	require.Empty(t, CommandsOf(c))
}

func TestACommandFindsItsEndpoint(t *testing.T) {
	two := []string{"chat", "prod/chat"}
	parse := func(line string) Command {
		got := ParseCommands(line)
		require.Len(t, got, 1)
		require.Empty(t, got[0].Problem)
		return got[0]
	}
	c, err := parse("/sluice resume").Among([]string{"prod/chat"})
	require.NoError(t, err)
	require.Equal(t, "prod/chat", c.Selector)
	c, err = parse("/sluice cancel chat because of p95").Among(two)
	require.NoError(t, err)
	require.Equal(t, Command{Verb: Cancel, Selector: "chat", Reason: "because of p95", Line: 1}, c)
	_, err = parse("/sluice resume").Among(two)
	require.EqualError(t, err, "say which: this pull request has chat, prod/chat; for example: /sluice resume chat")
	_, err = parse("/sluice cancel prod/chatt slow").Among(two)
	require.EqualError(t, err, `nothing here is named "prod/chatt"; there is chat, prod/chat`)
	_, err = parse("/sluice cancel chat").Among(two)
	require.EqualError(t, err, "cancel needs a reason: /sluice cancel prod/chat because p95 doubled")
	_, err = parse("/sluice resume").Among(nil)
	require.EqualError(t, err, "nothing here can be steered by resume")
}

func TestAShortDigestApprovesItsPlanOnly(t *testing.T) {
	digest := "sha256:2b269423920f" + strings.Repeat("0", 52)
	c := ParseCommands("/sluice approve 2b269423920f")[0]
	require.True(t, c.Approves(digest))
	require.False(t, c.Approves("sha256:2b269423920e"+strings.Repeat("0", 52)))
	require.False(t, c.Approves(""))
	require.False(t, Command{Verb: Approve}.Approves(digest))
	require.False(t, Command{Verb: Resume, Digest: c.Digest}.Approves(digest))
}

func TestEveryVerbHasHelpAndAnExampleThatWorks(t *testing.T) {
	for _, u := range usages {
		got := ParseCommands(u.example)
		require.Len(t, got, 1)
		require.Empty(t, got[0].Problem)
		require.Equal(t, u.verb, got[0].Verb)
		require.NotEmpty(t, got[0].Effect())
		require.Contains(t, CommandHelp(), u.example)
	}
	require.Contains(t, Command{Verb: Promote}.Effect(), "the gates of the steps between are skipped")
	require.Empty(t, Command{}.Effect())
}

// requireBounded says what holds for any comment.
func requireBounded(t require.TestingT, body string) {
	got := ParseCommands(body)
	require.LessOrEqual(t, len(got), mostCommands)
	lines := strings.Split(body, "\n")
	last := 0
	for _, c := range got {
		require.Equal(t, c.Verb == "", c.Problem != "")
		require.Greater(t, c.Line, last)
		last = c.Line
		require.LessOrEqual(t, len(c.Reason), longestReason)
		require.LessOrEqual(t, len(c.Selector), longestArgued)
		require.LessOrEqual(t, len(c.Problem), 1000)
		if c.Verb != "" {
			require.True(t, strings.HasPrefix(lines[c.Line-1], prefix), "%q", lines[c.Line-1])
			_, ok := usageOf(c.Verb)
			require.True(t, ok)
		}
		if c.Verb == Cancel || c.Verb == Reverse {
			require.NotEmpty(t, c.Reason)
		}
	}
	require.Empty(t, ParseCommands("> "+strings.NewReplacer("\r\n", "\n> ", "\n", "\n> ", "\r", "\n> ").Replace(body)), "quoted")
}

func TestAnyCommentIsBoundedAndItsQuoteNeverActs(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"/sluice ", "cancel ", "resume", "approve ", "2b269423920f", "prod/chat ", "because", "\n", "\n\n", "\r\n", "`", "```", "~~~", "> ", "- ", "    ", "<!--", "-->", "\"", "*", "[", "](", "|", "---", "\u00a0", "\u202e", "#", "<details>"})
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOfN(rapid.OneOf(pieces, rapid.String()), 0, 30).Draw(rt, "body")
		requireBounded(rt, strings.Join(words, ""))
	})
}

// A comment that is made to be slow to read is read quickly.
func TestHostileCommentsAreReadInTime(t *testing.T) {
	runs := "" // of backticks, none as long as another
	for n := 1; n < 300; n++ {
		runs += strings.Repeat("`", n) + " "
	}
	for _, bomb := range []string{">", "- ", "[", "*a ", "`", "<!--", "![", "_a*", "~", "|", "\\", "((", "&", "<a ", "# ", "> > > > > > > >\n", "[a]: b\n", "- a\n", strings.Repeat(" - ", 60) + "\n", "a\n> ", "|a|\n|-|\n", "<b\n", runs} {
		body := "/sluice resume\n" + strings.Repeat(bomb, (longestBody-20)/len(bomb))
		require.LessOrEqual(t, len(body), longestBody)
		begun := time.Now()
		ParseCommands(body)
		require.Less(t, time.Since(begun), 10*time.Second, bomb) // 0.1 s at the most; a second under -race
	}
}

func FuzzParseCommands(f *testing.F) {
	for _, s := range []string{"/sluice cancel prod/chat because of p95", "> /sluice resume\n/sluice resume", "```\n/sluice resume\n```\n/sluice help", "/sluice approve sha256:2b269423920f\r\n", "/sluice override \"a b\" c", fmt.Sprintf("%s\n/sluice plan", strings.Repeat(">", 100))} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) { requireBounded(t, body) })
}
