package render

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// printer writes lines and keeps the first error. With a width it breaks lines at
// spaces, so that a narrow terminal never cuts a word.
type printer struct {
	w     io.Writer
	width int // columns; 0 for no limit
	err   error
}

func (o Options) printer(w io.Writer) *printer { return &printer{w: w, width: o.Width} }

// raw writes a line as it is.
func (p *printer) raw(line string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(line, " "))
	}
}

// line writes a line; what does not fit goes on below, four columns further in.
func (p *printer) line(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	indent := len(text) - len(strings.TrimLeft(text, " "))
	for _, l := range broken(text, p.width, indent+4) {
		p.raw(l)
	}
}

// broken cuts a line at its spaces into lines of at most width columns; those after
// the first begin with so many spaces. A word that is longer stays whole. Colours
// take no room.
func broken(text string, width, hanging int) []string {
	if width <= 0 || columns(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, token := range spaced(text) {
		switch {
		case line == "" || columns(line)+columns(token) <= width:
			line += token
		default:
			lines = append(lines, line)
			line = strings.Repeat(" ", hanging) + strings.TrimLeft(token, " ")
		}
	}
	return append(lines, line)
}

// spaced cuts text into words, each with the spaces before it.
func spaced(text string) []string {
	var tokens []string
	start, inWord := 0, false
	for i, r := range text {
		if r == ' ' && inWord {
			tokens, start = append(tokens, text[start:i]), i
		}
		inWord = r != ' '
	}
	return append(tokens, text[start:])
}

// columns counts what a line takes on a terminal, without its colours.
func columns(s string) int {
	n := 0
	for {
		plain, rest, coloured := strings.Cut(s, "\x1b[")
		n += utf8.RuneCountInString(plain)
		if !coloured {
			return n
		}
		_, s, _ = strings.Cut(rest, "m")
	}
}

// command writes a shell command; one that is too long goes on after a backslash, so
// that it can be copied as it stands.
func (p *printer) command(indent, command string, paint func(string) string) {
	line := indent
	for i, part := range strings.Split(command, " --") {
		if i > 0 {
			part = " --" + part
		}
		if p.width > 0 && i > 0 && columns(line)+columns(part)+2 > p.width {
			p.raw(indent + paint(strings.TrimPrefix(line, indent)+` \`))
			line = indent + "   "
		}
		line += part
	}
	lead := line[:len(line)-len(strings.TrimLeft(line, " "))]
	p.raw(lead + paint(line[len(lead):]))
}

// table aligns columns by runes; cells must not hold colour.
type table struct{ rows [][]string }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// narrowest is the least room in which a last column is wrapped beside the others;
// with less it gets lines of its own.
const narrowest = 24

// hanging is how far lines that continue a row stand in.
const hanging = "    "

func (t *table) print(p *printer, indent string, tone func(row int, line string) string) {
	width := t.widths()
	groups := grouped(width, p.width-len(indent))
	for n, row := range t.rows {
		for g, from := range groups {
			to := len(width)
			if g+1 < len(groups) {
				to = groups[g+1]
			}
			lead := indent
			if g > 0 {
				lead += hanging
			}
			for _, l := range t.cells(row, width, from, to, p.width-len(lead), g) {
				p.raw(lead + tone(n, l))
			}
		}
	}
}

func (t *table) widths() []int {
	var width []int
	for _, row := range t.rows {
		for i, c := range row {
			if i >= len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], columns(c))
		}
	}
	return width
}

// grouped says with which columns a new line begins, so that each fits into the
// room; a negative or zero room is no limit.
func grouped(width []int, room int) []int {
	groups := []int{0}
	if room <= 0 {
		return groups
	}
	used := 0
	for i, w := range width {
		if i+1 == len(width) && room-used >= narrowest {
			break // the last one is wrapped beside the others
		}
		if used > 0 && used+w > room {
			groups, used = append(groups, i), len(hanging)
		}
		used += w + 2
	}
	return groups
}

// cells are the lines of some columns of a row. The last column is wrapped.
func (t *table) cells(row []string, width []int, from, to, room, group int) []string {
	var b strings.Builder
	used := 0
	for i := from; i < min(to, len(row)); i++ {
		if i == len(width)-1 && room > 0 && columns(row[i]) > room-used {
			lines := wrapped(row[i], max(room-used, 1))
			for k := 1; k < len(lines); k++ {
				lines[k] = strings.Repeat(" ", used) + lines[k]
			}
			return append([]string{b.String() + lines[0]}, lines[1:]...)
		}
		b.WriteString(row[i])
		if i < len(row)-1 {
			b.WriteString(strings.Repeat(" ", width[i]-columns(row[i])+2))
		}
		used += width[i] + 2
	}
	line := strings.TrimRight(b.String(), " ")
	if line == "" && group > 0 {
		return nil
	}
	return []string{line}
}

// Table writes rows with aligned columns, the first of which may be a header. What
// others wrote in them is made inert.
func Table(w io.Writer, rows [][]string, o Options) error {
	p, t := o.printer(w), &table{}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = Inert(c)
		}
		t.add(cells...)
	}
	t.print(p, "", func(_ int, s string) string { return s })
	return p.err
}

// wrapped breaks text at spaces to lines of at most n runes.
func wrapped(text string, n int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case columns(line)+1+columns(word) <= n:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// room is how many columns text may take behind an indent, at most n.
func (p *printer) room(n, indent int) int {
	if p.width <= 0 {
		return n
	}
	return max(1, min(n, p.width-indent))
}

// Notes writes lines below a plan. What others wrote in them is made inert.
func Notes(w io.Writer, notes []string, o Options) error {
	p := o.printer(w)
	p.line("")
	for _, n := range notes {
		p.line("  %s", Inert(n))
	}
	return p.err
}

// Line writes one line, broken to the width; what follows stands ten columns in, under
// the text of a progress line.
func Line(w io.Writer, text string, o Options) error {
	p := o.printer(w)
	for _, l := range broken(text, p.width, 10) {
		p.raw(l)
	}
	return p.err
}
