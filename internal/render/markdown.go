package render

import (
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// mark is text that is safe in Markdown. Only constants and the functions of this file
// make one, so a text of others cannot get into a page by mistake.
type mark string

// says fills marks into a text of ours, at each %.
func says(format mark, args ...mark) mark {
	var b strings.Builder
	parts := strings.Split(string(format), "%")
	for i, part := range parts {
		b.WriteString(part)
		if i < len(parts)-1 && i < len(args) {
			b.WriteString(string(args[i]))
		}
	}
	return mark(b.String())
}

func join(marks []mark, between mark) mark {
	texts := make([]string, 0, len(marks))
	for _, m := range marks {
		if m != "" {
			texts = append(texts, string(m))
		}
	}
	return mark(strings.Join(texts, string(between)))
}

// clip shortens a text to so many characters.
func clip(s string, most int) string {
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}

// longestText is how many characters of one text of others are shown, and longestName
// of one name.
const (
	longestText = 600
	longestName = 120
)

// code shows a text as it is, in a code span. Forges look for no mention, reference or
// link in one.
func code(s string) mark {
	s = strings.TrimSpace(clip(Inert(s), longestText))
	if s == "" {
		return "–"
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if s[0] == '`' || s[len(s)-1] == '`' {
		s = " " + s + " "
	}
	return mark(fence + s + fence)
}

func name(s string) mark { return code(clip(Inert(s), longestName)) }

// longestRun is the length of the longest row of one character in a text.
func longestRun(s string, c rune) int {
	most, n := 0, 0
	for _, r := range s {
		if n++; r != c {
			n = 0
		}
		most = max(most, n)
	}
	return most
}

// prose writes a sentence in which a text of others may stand, and which may begin a
// line: its first word must not begin a list, a heading or a command of the forge.
func prose(s string) mark {
	s = strings.TrimSpace(clip(Inert(s), longestText))
	first, rest, _ := strings.Cut(s, " ")
	if !opens.MatchString(first) {
		return inline(s)
	}
	return join([]mark{code(first), inline(rest)}, " ")
}

// inline writes a sentence inside a line. A word that a forge or a Markdown parser could
// read as anything but a word becomes a code span.
func inline(s string) mark {
	words := strings.Fields(clip(Inert(s), longestText))
	for i, w := range words {
		words[i] = word(w)
	}
	return mark(strings.Join(words, " "))
}

// word leaves the punctuation around a word outside its code span.
func word(w string) string {
	core := strings.TrimRight(w, ".,;:)?!\"'")
	core = strings.TrimLeft(core, "(\"'")
	if core == "" {
		return w
	}
	at := strings.Index(w, core)
	before, after := w[:at], w[at+len(core):]
	if !plain(core) {
		return before + string(code(core)) + after
	}
	return w
}

var (
	opens  = regexp.MustCompile(`^([-+=/]|[0-9]+[.)]$)`)
	ticket = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*-[0-9]`)
	commit = regexp.MustCompile(`[0-9a-fA-F]{7,}`)
	linked = regexp.MustCompile(`(?i)[.:]\p{L}|%[\p{L}\d]|//|www|mailto|xmpp`)
)

// plain reports whether a word means nothing to a forge. What is not known to be plain
// is not.
func plain(w string) bool {
	for _, r := range w {
		if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune(".,;:()'\"-+%/?=≤≥→–—…·×▶⚠✓✗●‖○∅", r) {
			return false
		}
	}
	if strings.HasPrefix(w, "%") && w != "%" || strings.HasPrefix(w, ":") {
		return false
	}
	return !ticket.MatchString(w) && !commit.MatchString(w) && !linked.MatchString(w)
}

// link is a link to an address of ours; one that is no web address is shown as text.
func link(text mark, address string) mark {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || len(address) > 500 {
		return text
	}
	escaped := strings.NewReplacer("<", "%3C", ">", "%3E", "\\", "%5C", "`", "%60", " ", "%20").Replace(u.String())
	if strings.IndexFunc(escaped, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return text
	}
	return mark("[" + string(text) + "](<" + escaped + ">)")
}

// page is a Markdown document that grows.
type page struct{ b strings.Builder }

func (p *page) size() int { return p.b.Len() }

func (p *page) para(m mark) {
	if m != "" {
		p.b.WriteString("\n" + string(m) + "\n")
	}
}

func (p *page) items(ms []mark) {
	if len(ms) == 0 {
		return
	}
	p.b.WriteString("\n")
	for _, m := range ms {
		p.b.WriteString("- " + string(m) + "\n")
	}
}

// table writes rows below a head. A bar of others would end a cell.
func (p *page) table(head []mark, rows [][]mark) {
	if len(rows) == 0 {
		return
	}
	p.b.WriteString("\n")
	p.row(head)
	p.row(slices.Repeat([]mark{"---"}, len(head)))
	for _, r := range rows {
		p.row(r)
	}
}

func (p *page) row(cells []mark) {
	p.b.WriteString("|")
	for _, c := range cells {
		p.b.WriteString(" " + strings.ReplaceAll(string(c), "|", "¦") + " |")
	}
	p.b.WriteString("\n")
}

// block writes a text of several lines as it is, behind a fence longer than any in it.
func (p *page) block(language, text string) {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, l := range lines {
		tabbed := strings.Split(strings.TrimRight(l, "\r"), "\t")
		for k := range tabbed {
			tabbed[k] = Inert(tabbed[k])
		}
		lines[i] = strings.TrimRight(strings.Join(tabbed, "\t"), " \t")
	}
	body := strings.Join(lines, "\n")
	fence := strings.Repeat("`", max(3, longestRun(body, '`')+1))
	p.b.WriteString("\n" + fence + language + "\n" + body + "\n" + fence + "\n")
}

// fold writes what a reader opens when it matters. The summary is HTML and no Markdown.
func (p *page) fold(summary mark, body func()) {
	p.b.WriteString("\n<details><summary>" + string(summary) + "</summary>\n")
	body()
	p.b.WriteString("\n</details>\n")
}

// inSummary shows a name in the summary of a fold.
func inSummary(s string) mark {
	return mark("<code>" + html.EscapeString(strings.TrimSpace(clip(Inert(s), longestName))) + "</code>")
}
