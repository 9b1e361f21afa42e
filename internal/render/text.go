package render

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Options of a rendering. The zero value gives plain text with instants and no
// clocks relative to now.
type Options struct {
	Now     time.Time // for clocks; zero leaves them out
	Color   Palette
	Width   int               // columns of the terminal; 0 for no limit
	Names   map[string]string // deployment ids to names for people
	Command func(verb Verb, endpointID, rolloutID string) string
}

// Palette says whether to write colours.
type Palette int

// The palettes.
const (
	Plain Palette = iota
	ANSI
)

// Verb is a control that a person can use.
type Verb string

// The verbs.
const (
	Resume  Verb = "resume"
	Promote Verb = "promote"
	Cancel  Verb = "cancel"
	Start   Verb = "start"
	Delete  Verb = "delete"
	Reverse Verb = "reverse" // a comment's alone: the command line spells it as a rollout the other way
)

// DefaultCommand is how the sluice command spells a control.
func DefaultCommand(v Verb, endpointID, rolloutID string) string {
	if v == Delete {
		return "sluice rm " + rolloutID
	}
	cmd := "sluice rollout " + endpointID + " --" + string(v)
	if v == Cancel {
		cmd += " --reason \"…\""
	}
	return cmd
}

func (o Options) command(v Verb, endpointID, rolloutID string) string {
	if o.Command != nil {
		return o.Command(v, Inert(endpointID), Inert(rolloutID))
	}
	return DefaultCommand(v, Inert(endpointID), Inert(rolloutID))
}

// Name is a deployment as people call it, with its id.
func (o Options) Name(id string) string { return o.name(id) }

// name prefers a deployment's name to its id.
func (o Options) name(id string) string {
	if n := o.Names[id]; n != "" {
		return Inert(n) + " (" + Inert(id) + ")"
	}
	return Inert(id)
}

type tint string

const (
	green  tint = "32"
	red    tint = "31"
	yellow tint = "33"
	dim    tint = "2"
	bold   tint = "1"
)

func (o Options) paint(t tint, s string) string {
	if o.Color != ANSI || s == "" {
		return s
	}
	return "\x1b[" + string(t) + "m" + s + "\x1b[0m"
}

// Inert makes text of others harmless: control characters, ANSI escapes, marks that
// reorder text and characters that nobody sees are written as what they are; newlines
// become spaces.
func Inert(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r) && r != joiner || r == '\u2028' || r == '\u2029':
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// joiner is seen in what it joins, as in families of emoji.
const joiner = '\u200d'

// value prints a measured number with as many digits as help.
func value(v float64) string {
	digits := 2
	if a := math.Abs(v); a >= 100 {
		digits = 0
	} else if a < 0.1 && a > 0 {
		digits = 4
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// clock is a duration as minutes and seconds, "4:10"; below ten seconds with
// tenths, for engines that run compressed.
func clock(d time.Duration) string {
	d = max(d, 0)
	if d < 10*time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	secs := int64(d.Round(time.Second) / time.Second)
	if secs >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", secs/3600, secs/60%60, secs%60)
	}
	return fmt.Sprintf("%d:%02d", secs/60, secs%60)
}
