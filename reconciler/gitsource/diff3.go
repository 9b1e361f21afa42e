package gitsource

import (
	"bytes"
	"slices"
	"strings"
)

// mostEdits bounds the difference of one side to its base, in lines added and removed;
// what differs more is for a person.
const mostEdits = 4000

// hunk replaces the lines [from, to) of a base.
type hunk struct {
	from, to int
	lines    []string
}

// merge3 puts together what two sides made of one text, line by line. ok is false when
// both changed the same lines, or lines that touch, in different ways, or when a side
// is no text.
func merge3(base, ours, theirs []byte) (merged []byte, ok bool) {
	for _, side := range [][]byte{base, ours, theirs} {
		if bytes.IndexByte(side, 0) >= 0 {
			return nil, false
		}
	}
	b := lines(base)
	left, okLeft := diff(b, lines(ours))
	right, okRight := diff(b, lines(theirs))
	if !okLeft || !okRight {
		return nil, false
	}
	var out strings.Builder
	at := 0
	for len(left) > 0 || len(right) > 0 {
		from, to, l, r := cluster(left, right)
		left, right = left[len(l):], right[len(r):]
		write(&out, b[at:from])
		mine, others := applied(b, l, from, to), applied(b, r, from, to)
		switch {
		case len(r) == 0 || slices.Equal(mine, others):
			write(&out, mine)
		case len(l) == 0:
			write(&out, others)
		default:
			return nil, false
		}
		at = to
	}
	write(&out, b[at:])
	return []byte(out.String()), true
}

// cluster takes the first hunks of both sides that overlap or touch, one after the
// other; [from, to) is what they cover of the base.
func cluster(left, right []hunk) (from, to int, l, r []hunk) {
	switch {
	case len(right) == 0 || len(left) > 0 && left[0].from <= right[0].from:
		from, to, l = left[0].from, left[0].to, left[:1]
	default:
		from, to, r = right[0].from, right[0].to, right[:1]
	}
	for {
		switch {
		case len(l) < len(left) && left[len(l)].from <= to && (len(r) > 0 || left[len(l)].from < to):
			to, l = max(to, left[len(l)].to), left[:len(l)+1]
		case len(r) < len(right) && right[len(r)].from <= to && (len(l) > 0 || right[len(r)].from < to):
			to, r = max(to, right[len(r)].to), right[:len(r)+1]
		default:
			return from, to, l, r
		}
	}
}

// applied is what hunks make of the lines [from, to) of a base.
func applied(base []string, hunks []hunk, from, to int) []string {
	var out []string
	for _, h := range hunks {
		out = append(append(out, base[from:h.from]...), h.lines...)
		from = h.to
	}
	return append(out, base[from:to]...)
}

func write(out *strings.Builder, lines []string) {
	for _, l := range lines {
		out.WriteString(l)
	}
}

// lines splits a text behind each line feed.
func lines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	all := strings.SplitAfter(string(text), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// diff is a shortest way from a to b in hunks, by Myers' greedy algorithm; ok is false
// when it needs more than mostEdits.
func diff(a, b []string) (hunks []hunk, ok bool) {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	end := 0
	for end < len(a)-head && end < len(b)-head && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	a, b = a[head:len(a)-end], b[head:len(b)-end]
	trace, ok := search(a, b)
	if !ok {
		return nil, false
	}
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0 && (x > 0 || y > 0); d-- {
		px, py := previous(trace[d], x, y, d)
		for x > px && y > py && x > 0 && y > 0 && a[x-1] == b[y-1] {
			x, y = x-1, y-1
		}
		if d == 0 {
			break
		}
		hunks = prepend(hunks, hunk{head + px, head + x, b[py:y]})
		x, y = px, py
	}
	slices.Reverse(hunks)
	return hunks, true
}

// search finds how far each diagonal reaches after d edits; trace[d] is that state
// before edit d.
func search(a, b []string) (trace [][]int, ok bool) {
	most := min(len(a)+len(b), mostEdits)
	v := []int{0, 0, 0} // by diagonal k at index k+d+1
	for d := 0; d <= most; d++ {
		trace = append(trace, v)
		next := make([]int, 2*d+5)
		for k := -d; k <= d; k += 2 {
			x := step(v, k, d)
			y := x - k
			for x < len(a) && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			next[k+d+2] = x
			if x >= len(a) && y >= len(b) {
				return trace, true
			}
		}
		v = next
	}
	return nil, false
}

// step is where diagonal k begins with edit d: one line added or one removed.
func step(v []int, k, d int) int {
	at := func(k int) int { return v[k+d+1] }
	switch {
	case d == 0:
		return 0
	case k == -d || k != d && at(k-1) < at(k+1):
		return at(k + 1)
	}
	return at(k-1) + 1
}

// previous is the point before edit d on the way to (x, y).
func previous(v []int, x, y, d int) (px, py int) {
	if d == 0 {
		return 0, 0
	}
	k := x - y
	at := func(k int) int { return v[k+d+1] }
	if k == -d || k != d && at(k-1) < at(k+1) {
		px = at(k + 1)
		return px, px - (k + 1)
	}
	px = at(k - 1)
	return px, px - (k - 1)
}

// prepend adds an earlier hunk to hunks that are in reverse order, as one with the
// next when they touch.
func prepend(hunks []hunk, h hunk) []hunk {
	if n := len(hunks); n > 0 && hunks[n-1].from == h.to {
		next := hunks[n-1]
		hunks[n-1] = hunk{h.from, next.to, append(slices.Clone(h.lines), next.lines...)}
		return hunks
	}
	return append(hunks, h)
}
