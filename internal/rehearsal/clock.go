package rehearsal

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Epoch is the instant at which every world begins: +0:00.
var Epoch = time.Date(2026, 9, 16, 20, 39, 45, 0, time.UTC)

// clock prints an instant as the time since the world began.
func clock(t time.Time) string {
	d := t.Sub(Epoch).Round(time.Millisecond)
	sign := "+"
	if d < 0 {
		sign, d = "-", -d
	}
	days, rest := d/(24*time.Hour), d%(24*time.Hour)
	h, m, s := rest/time.Hour, rest%time.Hour/time.Minute, rest%time.Minute
	seconds := fmt.Sprintf("%02d", s/time.Second)
	if ms := s % time.Second / time.Millisecond; ms > 0 {
		seconds += fmt.Sprintf(".%03d", ms)
	}
	switch {
	case days > 0:
		return fmt.Sprintf("%s%dd%02d:%02d:%s", sign, days, h, m, seconds)
	case h > 0:
		return fmt.Sprintf("%s%d:%02d:%s", sign, h, m, seconds)
	}
	return fmt.Sprintf("%s%d:%s", sign, m, seconds)
}

// parseClock reads +M:SS, +H:MM:SS and +9d00:00:00.
func parseClock(text string) (time.Duration, error) {
	rest, ok := strings.CutPrefix(text, "+")
	if !ok {
		return 0, fmt.Errorf("%q is not a moment such as +1:30", text)
	}
	var total time.Duration
	if days, more, ok := strings.Cut(rest, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil {
			return 0, fmt.Errorf("%q is not a moment: %w", text, err)
		}
		total, rest = time.Duration(n)*24*time.Hour, more
	}
	seconds := 0
	for part := range strings.SplitSeq(rest, ":") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("%q is not a moment such as +1:30", text)
		}
		seconds = seconds*60 + n
	}
	return total + time.Duration(seconds)*time.Second, nil
}

// earlier returns the earlier of two instants, of which a zero one does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
