package render

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	markdown "github.com/yuin/goldmark/text"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

var gfm = goldmark.New(goldmark.WithExtensions(extension.GFM))

// goldenComment compares with testdata/comments/NAME.md.
func goldenComment(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "comments", name+".md")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestTheCommentOfAPullRequest(t *testing.T) {
	for name, s := range map[string]Sheet{
		"first_plan": planSheet(), "policy_denial": deniedSheet(), "infeasible": infeasibleSheet(), "hcl_error": invalidSheet(),
		"conflict": conflictSheet(), "drift_beside_change": driftSheet(), "approval_by_digest": digestSheet(),
		"live_mid_soak": soakingSheet(t), "parked_by_regression": parkedSheet(t, rollout.MetricRegression),
		"parked_by_capacity": parkedSheet(t, rollout.CapacityExhausted), "canceled_and_reverse_running": canceledSheet(t), "canceled_and_taken_back": takenBackSheet(t),
		"completed_receipt": completedSheet(t), "superseded": supersededSheet(), "closed": closedSheet(),
		"hostile_plan": hostileSheet(t, hostileName, Planned), "hostile_live": hostileSheet(t, hostileName, Following),
	} {
		t.Run(name, func(t *testing.T) {
			got := Comment(s, 0)
			goldenComment(t, name, got)
			requireInert(t, got)
			require.Equal(t, got, Comment(s, 0), "the same sheet gives the same bytes")
		})
	}
}

// ourHTML is all that a comment of ours has of HTML.
var ourHTML = regexp.MustCompile(`^(<!-- sluice instance=[A-Za-z0-9%._+~]* repository=[A-Za-z0-9%._+~]* -->|<details><summary>[^<>@]*(<code>[^<>]*</code>[^<>@]*)*</summary>|</details>)$`)

// pings is what forges look for in text that is not code.
var pings = regexp.MustCompile(`@|#\d|GH-\d|://|www\.|[~!%&$^]\w|\b[0-9a-f]{7,40}\b|\[|<|\x60`)

// requireInert parses a comment as a forge does and looks for anything that is not ours.
// It returns the comment's skeleton: its blocks without their text.
func requireInert(t require.TestingT, comment string) string {
	var skeleton strings.Builder
	source := []byte(comment)
	open := 0
	err := ast.Walk(gfm.Parser().Parse(markdown.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		if n.Type() == ast.TypeBlock && n.Kind() != ast.KindTextBlock {
			fmt.Fprintf(&skeleton, "%s ", n.Kind())
		}
		if k := n.Kind(); k == ast.KindParagraph || k == ast.KindTextBlock {
			for _, l := range n.Lines().Sliced(0, n.Lines().Len()) {
				require.NotRegexp(t, `^\s*/`, string(l.Value(source)), "a forge would take this for a command")
			}
		}
		switch n := n.(type) {
		case *ast.Image, *ast.AutoLink, *ast.RawHTML:
			require.Fail(t, "not ours", "%s in\n%s", n.Kind(), comment)
		case *ast.Link:
			require.Regexp(t, `^https://(forge|sluice)\.example/`, string(n.Destination))
		case *ast.HTMLBlock:
			html := string(n.Lines().Value(source))
			if n.HasClosure() {
				html += string(n.ClosureLine.Value(source))
			}
			for line := range strings.Lines(html) {
				require.Regexp(t, ourHTML, strings.TrimRight(line, "\n"))
				open += strings.Count(line, "<details>") - strings.Count(line, "</details>")
				require.LessOrEqual(t, open, 1)
			}
			fmt.Fprintf(&skeleton, "%d ", open)
		case *ast.Text:
			if n.Parent().Kind() != ast.KindCodeSpan {
				require.NotRegexp(t, pings, string(n.Segment.Value(source)))
			}
		case *ast.Heading:
			fmt.Fprintf(&skeleton, "%d ", n.Level)
		case *extast.TableRow:
			fmt.Fprintf(&skeleton, "%d ", n.ChildCount())
		}
		return ast.WalkContinue, nil
	})
	require.NoError(t, err)
	require.Zero(t, open, "each fold is closed")
	return skeleton.String()
}

// K11: whatever others call their things, nobody is pinged, nothing is linked, and the
// comment keeps its shape.
func TestTextOfOthersIsInertInAComment(t *testing.T) {
	for _, stage := range []Stage{Planned, Following, Superseded, Closed} {
		want := requireInert(t, Comment(hostileSheet(t, "plain", stage), 0))
		require.Equal(t, want, requireInert(t, Comment(hostileSheet(t, hostileName, stage), 0)))
		rapid.Check(t, func(rt *rapid.T) {
			words := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.SampledFrom(nasty)), 1, 6)
			s := strings.Join(words.Draw(rt, "words"), rapid.SampledFrom([]string{"", " ", "\n", "\n\n", "\t"}).Draw(rt, "between"))
			if strings.TrimSpace(Inert(s)) == "" {
				return
			}
			require.Equal(rt, want, requireInert(rt, Comment(hostileSheet(t, s, stage), 1<<24)), "%q", s)
		})
	}
}

// nasty are words that mean something to a forge or a parser.
var nasty = []string{
	"`", "``", "```", "~~~", "</details>", "<details>", "<!--", "-->", "<b>", "<script>", "&lt;", "&#64;team", "@team", "@acme/platform", "#12", "GH-12", "org/repo#1", "!5", "~label", "%3", "$7",
	"&2", "^alert#1", "[a](http://x.example)", "![a](http://x.example/p.png)", "[a]:", "[^1]", "http://x.example", "https://x.example/?a=b", "www.x.example", "ftp://x.example", "mailto:a@b.example",
	"a@b.example", "*", "**", "_", "__a__", "~~", "|", "\\|", "\\", "\\`", "# h", "## h", "---", "===", "- a", "+ a", "1. a", "1) a", "> a", "/approve", "/sluice cancel", ":tada:", "a|b", "|---|", "\x1b[2J",
	"\u202e", "\u200b", "\u2028", "\x00", "\xff", "3f2a91c04be7", "ABC-123", "- [ ] a", "    code", "\t", "<http://x.example>", "<a@b.example>", "x:y", "//x", "(", ")", "…", "!", "!!", "![", "](", "\"", "'", "x@y",
}

// The terminal has the same sheet, with nothing of others that moves its cursor.
func TestASheetOnATerminal(t *testing.T) {
	for _, s := range []Sheet{planSheet(), deniedSheet(), driftSheet(), digestSheet(), invalidSheet(), conflictSheet(), soakingSheet(t), parkedSheet(t, rollout.MetricRegression), hostileSheet(t, hostileName, Following), hostileSheet(t, hostileName, Planned)} {
		var b bytes.Buffer
		require.NoError(t, SheetText(&b, s, Options{}))
		require.Contains(t, b.String(), s.Headline())
		for line := range strings.Lines(b.String()) {
			require.NotContains(t, line, "\x1b")
			require.NotContains(t, line, "\u202e")
		}
	}
	var b bytes.Buffer
	require.NoError(t, SheetText(&b, parkedSheet(t, rollout.MetricRegression), Options{}))
	require.Contains(t, b.String(), "parked: METRIC_REGRESSION since")
	require.Contains(t, b.String(), "sluice rollout ep_1 --cancel")
	require.EqualError(t, SheetText(full{}, planSheet(), Options{}), "disk full")
}

// J9: what others changed stands apart from what this pull request changes.
func TestAStackOfAPlanTellsYoursFromTheirs(t *testing.T) {
	j := planning.NewJourney(spec(), planning.Known{}, rollout.DefaultTimings())
	st := StackOf("prod", planning.Changes{List: []planning.Change{
		{Action: planning.Update, ID: "dep_a", Blocked: "locked by rol_1 until it ends", Fields: []planning.FieldChange{
			{Path: "model", Before: []byte(`"a"`), After: []byte(`"b"`), Whose: planning.Yours},
			{Path: "max_replicas", Before: []byte(`12`), After: []byte(`8`), Whose: planning.Theirs},
			{Path: "token", Before: []byte(`"x"`), After: []byte(`"y"`), Sensitive: true},
			{Path: "id", Before: []byte(`null`), After: []byte(`null`), Unknown: true},
		}},
		{Action: planning.Create, Endpoint: "chat", Journey: &j, Findings: []planning.Finding{{Code: "X"}}},
	}})
	require.Equal(t, []Field{{"model", `"a"`, `"b"`}, {"token", "(sensitive)", "(sensitive)"}, {"id", "", "(known after apply)"}}, st.Changes[0].Fields)
	require.Equal(t, "locked by rol_1 until it ends", st.Changes[0].Held)
	require.Len(t, st.Drift, 1)
	require.Equal(t, "12", st.Drift[0].Theirs)
	require.Equal(t, "8", st.Drift[0].Yours)
	require.Equal(t, "chat", st.Rollouts[0].Endpoint)
	require.Len(t, st.Rollouts[0].Journey.Findings, len(j.Findings)+1)
}

func FuzzComment(f *testing.F) {
	f.Add(hostileName)
	for _, s := range nasty {
		f.Add(s)
	}
	stages := []Stage{Planned, Following, Superseded, Closed}
	shapes := map[Stage]string{}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.TrimSpace(Inert(s)) == "" {
			return
		}
		for _, stage := range stages {
			if shapes[stage] == "" {
				shapes[stage] = requireInert(t, Comment(hostileSheet(t, "plain", stage), 1<<24))
			}
			require.Equal(t, shapes[stage], requireInert(t, Comment(hostileSheet(t, s, stage), 1<<24)))
		}
	})
}

func TestAnAnswerIsInert(t *testing.T) {
	got := Answer([]string{`there is no verb "@team"; did you mean help?`, "/approve #12"}, "/sluice help\n```")
	require.Equal(t, "\nthere is no verb \"`@team`\"; did you mean help?\n\n`/approve` `#12`\n\n````\n/sluice help\n```\n````\n", got)
	requireInert(t, got)
	require.Empty(t, Answer(nil, ""))
}

func TestAHundredEndpointsFitIntoOneComment(t *testing.T) {
	for name, one := range map[string]Sheet{"plan": planSheet(), "live": soakingSheet(t), "parked": parkedSheet(t, rollout.MetricRegression), "digest": digestSheet()} {
		s := manySheet(t, 100, one)
		got := Comment(s, 0)
		require.LessOrEqual(t, len(got), LongestComment, name)
		requireInert(t, got)
		for i := range 100 {
			require.Contains(t, got, fmt.Sprintf("prod/chat-%03d", i), name)
		}
		if name == "parked" {
			require.Contains(t, got, "/sluice cancel prod/chat-099")
		}
		if name == "digest" {
			require.Equal(t, 100, strings.Count(got, "/sluice approve "))
		}
		require.Contains(t, got, "Left out, since a comment has a limit: ")
	}
}

// What is left out goes in one order, and verdict, parks and approvals never.
func TestACommentThatIsTooLongLeavesOutTheLeastNeeded(t *testing.T) {
	s := manySheet(t, 3, parkedSheet(t, rollout.MetricRegression))
	quiet := StackSheet{Name: "staging"}
	s.Stacks = append(s.Stacks, quiet)
	s.Stacks[0].Diff = strings.Repeat(s.Stacks[0].Diff+"\n", 20)
	for range 20 {
		s.History = append(s.History, s.History[0])
		run := s.Stacks[0].Rollouts[0].Run // of all three
		run.Events = append(run.Events, run.Events[0])
	}
	last := ""
	gone := []string{}
	for limit := len(Comment(s, 0)); limit > LeastComment; limit -= 50 {
		got := Comment(s, limit)
		require.LessOrEqual(t, len(got), limit)
		require.Contains(t, got, "is parked")
		require.Contains(t, got, "/sluice cancel prod/chat-002")
		require.Contains(t, strings.ToLower(got), "not touched")
		for _, what := range []string{"Earlier pushes", "HCL diff", "Events of", "nothing to change"} {
			if strings.Contains(last, what) && !strings.Contains(got, what) {
				gone = append(gone, what)
			}
		}
		last = got
	}
	require.Equal(t, []string{"Earlier pushes", "HCL diff", "Events of", "nothing to change"}, gone)
}

func TestALimitIsNeverPassed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(LeastComment, 40_000).Draw(rt, "limit")
		n := rapid.IntRange(1, 30).Draw(rt, "endpoints")
		word := rapid.SampledFrom(nasty).Draw(rt, "word")
		s := manySheet(t, n, hostileSheet(t, strings.Repeat(word+" ", 200), rapid.SampledFrom([]Stage{Planned, Following}).Draw(rt, "stage")))
		got := Comment(s, limit)
		require.LessOrEqual(rt, len(got), limit)
		requireInert(rt, got)
		require.True(rt, strings.HasPrefix(got, s.Marker.String()))
	})
}

func TestOnlyWebAddressesAreLinked(t *testing.T) {
	for _, address := range []string{"", "javascript:alert(1)", "data:text/html,x", "https://", "//x.example", "https://ann:secret@x.example", "https://x.example/" + strings.Repeat("x", 600)} {
		require.Equal(t, mark("a"), link("a", address), address)
	}
	require.Equal(t, mark("[a](<https://x.example/a%20%3Eb?c=%60d>)"), link("a", "https://x.example/a >b?c=`d"))
}

func TestMarkersAreToldApartAndHoldNoText(t *testing.T) {
	require.NotEqual(t, Marker{"a", "b c"}.String(), Marker{"a b", "c"}.String())
	require.Regexp(t, ourHTML, Marker{"--> <b>", "@team --"}.String())
}

// K1, K3: the key of a status has no clock, and the text has one.
func TestAStatusIsToldByItsKeyAndNotByItsText(t *testing.T) {
	s := soakingSheet(t)
	since := s.Stacks[0].Rollouts[0].Run.Rollout.Sluice.PhaseSince.Time
	state, text := Status(s, "prod/chat", since.Add(3*time.Minute+20*time.Second), 140)
	require.Equal(t, StatusPending, state)
	require.Equal(t, "step 2/3 · 50 % · soaking, 3m10s left of 6m30s", text)
	_, later := Status(s, "prod/chat", since.Add(4*time.Minute), 140)
	require.NotEqual(t, text, later)
	require.Equal(t, StatusKey{Commit: headCommit, Endpoint: "prod/chat", State: "STABILIZING", Step: 2}, KeyOf(s, "prod/chat"))
}

func TestStatusLines(t *testing.T) {
	lines := map[string]Sheet{
		"success plan ok: 1 rollout, 2 created · feasible":                                                                                                           planSheet(),
		"success plan ok: 1 rollout, 2 created · not feasible now: the journey's peak needs 3 more replicas of h100-80gb and 1 fit":                                  infeasibleSheet(),
		"failure not planned: 1 error in the HCL":                                                                                                                    invalidSheet(),
		"failure not planned: the branch cannot be merged into main":                                                                                                 conflictSheet(),
		"pending plan waits for approval: 1 rollout, 2 created · feasible":                                                                                           digestSheet(),
		"failure denied: sluice_rollout.chat: the first step puts 10 % on the target, at most 5 % are allowed in prod [first_step]; may be lifted by platform-leads": deniedSheet(),
		"success completed in 25m, 48211 requests, all answered with 200":                                                                                            completedSheet(t),
		"success Closed without a merge: nothing of it was applied":                                                                                                  closedSheet(),
		"failure parked: METRIC_REGRESSION at step 1/3 · 10 % · gating · router_latency p95 1740 ms vs 734 ms +137 % worse (budget 25 %) n=187 ≥ 20":                 parkedSheet(t, rollout.MetricRegression),
		"pending way back: step 1/3 · 90 % · scaling":                                                                                                                canceledSheet(t),
	}
	for want, s := range lines {
		state, text := Status(s, "prod/chat", time.Time{}, 300)
		require.Equal(t, want, string(state)+" "+text)
	}
	require.Equal(t, StatusKey{headCommit, "prod/chat", "SYSTEM_PAUSED METRIC_REGRESSION", 1}, KeyOf(parkedSheet(t, rollout.MetricRegression), "prod/chat"))
	require.Equal(t, StatusKey{headCommit, "prod/chat", "not feasible", 0}, KeyOf(infeasibleSheet(), "prod/chat"))
}

// E11: what is waited for is always named.
func TestWhatAnApplyWaitsForIsNamed(t *testing.T) {
	s := digestSheet()
	s.Stage, s.Waiting = Following, []string{"prod/router, which runs rol_7"}
	state, text := Status(s, "prod/chat", time.Time{}, 200)
	require.Equal(t, "pending plan waits for approval: 1 rollout, 2 created · feasible", string(state)+" "+text)
	require.Equal(t, "○ Waits for an approval: 1 rollout, 2 created, 0 replaced, 0 destroyed", s.Headline())
	require.Contains(t, Comment(s, 0), "/sluice approve 2b269423920f")
	s.Approval.Plans[0].Granted = []Granted{{By: "cleo", How: "comment", At: started}}
	state, text = Status(s, "prod/chat", time.Time{}, 200)
	require.Equal(t, "pending waits for prod/router, which runs rol_7", string(state)+" "+text)
	require.Equal(t, "○ Waits for prod/router, which runs rol_7: 1 rollout, 2 created, 0 replaced, 0 destroyed", s.Headline())
	require.Equal(t, "waiting", KeyOf(s, "prod/chat").State)
	s.Waiting = nil
	require.Equal(t, "● Being applied: 1 rollout, 2 created, 0 replaced, 0 destroyed", s.Headline())
	require.NotContains(t, Comment(s, 0), "To apply")
}

func TestAStatusIsCutAtAWholeCharacter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := planSheet()
		s.Stacks[0].Problem = rapid.String().Draw(rt, "problem")
		limit := rapid.IntRange(1, 80).Draw(rt, "limit")
		_, text := Status(s, "prod/chat", time.Time{}, limit)
		require.LessOrEqual(rt, len(text), limit)
		require.NotContains(rt, text, "\uFFFD")
	})
}
