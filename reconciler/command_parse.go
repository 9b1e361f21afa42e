package reconciler

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// prefix begins a command. It stands at the very beginning of a line.
const prefix = "/sluice"

// gfm reads comments as forges show them.
var gfm = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// ParseCommands finds the commands of a comment: lines that begin with "/sluice " and
// that a reader sees as plain text of the comment's own. What is quoted, in code, in a
// list, a table or HTML is talk about commands and none. A line that is meant as a
// command and is not one comes back with its Problem. With more than five, none acts, nor
// does any of a comment that is longer than 16 KiB.
func ParseCommands(body string) []Command {
	if !strings.Contains(body, prefix) {
		return nil
	}
	if len(body) > longestBody {
		return tooLong(body)
	}
	source := []byte(strings.ReplaceAll(body, "\r\n", "\n"))
	var out []Command
	doc := gfm.Parse(text.NewReader(source))
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() != ast.KindParagraph {
			continue
		}
		for i := range n.Lines().Len() {
			at := n.Lines().At(i)
			if !startsLine(source, at.Start) || !shownPlainly(n, at.Start) {
				continue
			}
			if c, ok := parseLine(string(at.Value(source))); ok {
				c.Line = 1 + bytes.Count(source[:at.Start], []byte("\n"))
				out = append(out, c)
			}
		}
	}
	if len(out) > mostCommands {
		return []Command{{Line: out[0].Line, Problem: fmt.Sprintf("there are %d commands in this comment, and at most %d are taken: none was done; write fewer", len(out), mostCommands)}}
	}
	return out
}

// tooLong answers a comment that is too long to be read and has what may be a command.
func tooLong(body string) []Command {
	for i, line := range strings.Split(body, "\n") {
		if _, ok := parseLine(strings.TrimSuffix(line, "\r")); ok {
			return []Command{{Line: i + 1, Problem: fmt.Sprintf("this comment is longer than %d bytes and no command in it was done; write the command in a comment of its own", longestBody)}}
		}
	}
	return nil
}

// startsLine reports whether a byte is the first of its line: an indent makes talk of a
// command.
func startsLine(source []byte, at int) bool { return at == 0 || source[at-1] == '\n' }

// shownPlainly reports whether the text at a byte of a paragraph is plain: not inside
// code, HTML, emphasis or a link that began on an earlier line.
func shownPlainly(paragraph ast.Node, at int) bool {
	for n := paragraph.FirstChild(); n != nil; n = n.NextSibling() {
		if t, ok := n.(*ast.Text); ok && t.Segment.Start <= at && at < t.Segment.Stop {
			return true
		}
	}
	return false
}

// parseLine reads one line; ok is false when it is no command at all.
func parseLine(line string) (c Command, ok bool) {
	line = strings.TrimRight(line, "\n")
	rest, found := strings.CutPrefix(line, prefix)
	if !found {
		return Command{}, false
	}
	if r, _ := utf8.DecodeRuneInString(rest); rest != "" && !unicode.IsSpace(r) {
		return Command{}, false // another word, such as /sluices
	}
	switch {
	case len(line) > longestLine:
		return mistake(fmt.Sprintf("the command is longer than %d bytes", longestLine), usageHelp()), true
	case !utf8.ValidString(line):
		return mistake("the command is not valid UTF-8", usageHelp()), true
	}
	if r, bad := firstOdd(rest); bad {
		return mistake(fmt.Sprintf("the command has the character %U, which cannot be seen or looks like another", r), usageHelp()), true
	}
	word, rest := cutWord(rest)
	return parseVerb(word, rest), true
}

func usageHelp() usage { return usages[len(usages)-1] }

// mistake is a command that is not done.
func mistake(why string, u usage) Command {
	return Command{Problem: why + "; for example: " + u.example}
}

// firstOdd finds a character that a reader cannot tell from another, or not see: spaces
// that are none, controls, marks of direction.
func firstOdd(s string) (rune, bool) {
	for _, r := range s {
		if unicode.IsSpace(r) && r != ' ' && r != '\t' || unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Cf, r) && r != '\u200d' {
			return r, true
		}
	}
	return 0, false
}

// parseVerb reads what follows the first word.
func parseVerb(word, rest string) Command {
	if word == "" {
		return mistake("the command has no verb", usageHelp())
	}
	u, ok := usageOf(Verb(strings.ToLower(word)))
	if !ok || !ascii(word) {
		return unknownVerb(word)
	}
	c, problem := Command{Verb: u.verb}, ""
	switch u.takes {
	case takesSelector:
		c.Selector, rest, problem = cutSelector(rest)
	case takesDigest:
		c.Digest, rest, problem = cutDigest(rest)
	case takesRule:
		c.Rule, rest, problem = cutRule(rest)
	case takesNothing:
		rest = ""
	}
	c.Reason = strings.Join(strings.Fields(rest), " ")
	switch {
	case problem != "":
		return mistake(problem, u)
	case len(c.Reason) > longestReason:
		return mistake(fmt.Sprintf("the reason is longer than %d bytes", longestReason), u)
	case u.reason == reasonNeeded && c.Reason == "":
		return mistake(fmt.Sprintf("%s needs a reason", u.verb), u)
	}
	return c
}

func unknownVerb(word string) Command {
	shown := word
	if r := []rune(word); len(r) > 40 {
		shown = string(r[:40]) + "…"
	}
	if !ascii(word) {
		return mistake(fmt.Sprintf("there is no verb %+q: it has letters that only look like those of a verb", shown), nearestVerb(lookalike(word)))
	}
	u := nearestVerb(strings.ToLower(shown))
	return mistake(fmt.Sprintf("there is no verb %q; did you mean %s?", shown, u.verb), u)
}

// lookalike takes letters that are none of ours for any.
func lookalike(word string) string {
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return '?'
		}
		return unicode.ToLower(r)
	}, word)
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// cutWord cuts the first word off.
func cutWord(s string) (word, rest string) {
	s = strings.TrimLeft(s, " \t")
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// cutQuoted cuts a name in double quotes off; ok is false when there is none, and the
// problem says when it does not end.
func cutQuoted(s string) (name, rest string, ok bool, problem string) {
	s = strings.TrimLeft(s, " \t")
	if !strings.HasPrefix(s, `"`) {
		return "", s, false, ""
	}
	name, rest, closed := strings.Cut(s[1:], `"`)
	switch {
	case !closed:
		return "", s, false, "a quoted name does not end: a \" is missing"
	case strings.TrimSpace(name) == "":
		return "", s, false, "a quoted name is empty"
	case len(name) > longestArgued:
		return "", s, false, fmt.Sprintf("a name is longer than %d bytes", longestArgued)
	case rest != "" && rest[0] != ' ' && rest[0] != '\t':
		return "", s, false, "a quoted name is followed by a space"
	}
	return name, rest, true, ""
}

// named is what a selector looks like without quotes: an endpoint with its project, an
// address of HCL, or the id of an endpoint or a rollout.
var named = regexp.MustCompile(`^(sluice_[a-z_]+\.[^ ]+|(ep|rol)_[A-Za-z0-9]+|[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+)$`)

// cutSelector cuts a selector off, where the first word is one.
func cutSelector(s string) (selector, rest, problem string) {
	name, rest, ok, problem := cutQuoted(s)
	if ok || problem != "" {
		return name, rest, problem
	}
	if address := keyed.FindString(strings.TrimLeft(s, " \t")); address != "" && len(address) <= longestArgued {
		return address, strings.TrimLeft(s, " \t")[len(address):], ""
	}
	word, rest := cutWord(s)
	if bare := strings.TrimRight(word, ":,"); len(bare) <= longestArgued && named.MatchString(bare) {
		return bare, rest, ""
	}
	return "", s, ""
}

// keyed is an address with a key of for_each, which may have spaces.
var keyed = regexp.MustCompile(`^sluice_\w+\.[\w-]+\["(?:[^"\\]|\\.)*"\]`)

var hexDigits = regexp.MustCompile(`^[0-9a-f]{12,64}$`)

// cutDigest cuts the digest of a plan off.
func cutDigest(s string) (digest, rest, problem string) {
	word, rest := cutWord(s)
	digest = strings.TrimPrefix(strings.ToLower(strings.Trim(word, "`")), "sha256:")
	switch {
	case word == "":
		return "", rest, "approve needs the digest of the plan, as the comment above shows it"
	case !ascii(word) || !hexDigits.MatchString(digest):
		return "", rest, fmt.Sprintf("approve needs the digest of the plan: %d to 64 hex digits", shortestDigest)
	}
	return digest, rest, ""
}

// cutRule cuts the name of a policy's rule off.
func cutRule(s string) (rule, rest, problem string) {
	name, rest, ok, problem := cutQuoted(s)
	if ok || problem != "" {
		return name, rest, problem
	}
	word, rest := cutWord(s)
	switch {
	case word == "":
		return "", rest, "override needs the name of the rule, which stands in brackets behind a denial"
	case len(word) > longestArgued:
		return "", rest, fmt.Sprintf("a rule's name is longer than %d bytes", longestArgued)
	}
	return word, rest, ""
}
