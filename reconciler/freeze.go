package reconciler

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// longestFreeze bounds how long each of a repeated freeze lasts.
const longestFreeze = 31 * 24 * time.Hour

// Covers reports whether a stack is meant.
func (f Freeze) Covers(k StackKey) bool {
	for _, s := range f.Stacks {
		if s == k || s.Stack == "" && s.Repository == k.Repository {
			return true
		}
	}
	return len(f.Stacks) == 0
}

// Frozen reports whether the freeze holds at an instant, and until when. A freeze that
// cannot be understood holds for ever: LoadConfig refuses it, and nothing else may start
// a rollout because of a typing error.
//
// A repeated freeze begins when the clock of its zone shows what cron says. What the
// clock shows twice, in the night when it is put back, is the first time; what it never
// shows, because it is put forward, is as long after midnight as on other days. Each
// lasts its length in real time. Where one begins before another has ended, until is the
// end of the last of them that follow each other so, of a hundred at most.
func (f Freeze) Frozen(now time.Time) (until time.Time, ok bool) {
	if f.Cron == "" {
		return f.Until, !now.Before(f.From) && now.Before(f.Until)
	}
	schedule, bad := f.schedule()
	zone, err := f.zone()
	if bad != nil || err != nil {
		return time.Time{}, true
	}
	begin, ok := latestStart(schedule, zone, now, f.For)
	if !ok {
		return time.Time{}, false
	}
	until = begin.Add(f.For)
	for range 100 {
		next, ok := latestStart(schedule, zone, until, f.For)
		if !ok || !next.Add(f.For).After(until) {
			break
		}
		until = next.Add(f.For)
	}
	return until, true
}

// schedule reads a repeated freeze, or says why it cannot be understood.
func (f Freeze) schedule() (cron.Schedule, error) {
	if len(strings.Fields(f.Cron)) != 5 || strings.HasPrefix(f.Cron, "TZ=") || strings.HasPrefix(f.Cron, "CRON_TZ=") {
		return nil, fmt.Errorf("%q has not five fields", f.Cron)
	}
	schedule, err := cron.ParseStandard(f.Cron)
	if err != nil {
		return nil, err
	}
	if schedule.Next(time.Unix(0, 0).UTC()).IsZero() {
		return nil, fmt.Errorf("%q never comes", f.Cron)
	}
	if f.For <= 0 || f.For > longestFreeze {
		return nil, fmt.Errorf("it lasts %s; write for, at most %s", f.For, longestFreeze)
	}
	return schedule, nil
}

// zone is the place whose clock cron means.
func (f Freeze) zone() (*time.Location, error) {
	if f.Zone == "Local" {
		return nil, errors.New("the zone Local is another one on each machine")
	}
	return time.LoadLocation(f.Zone) // none is UTC
}

// latestStart is the newest beginning at or before an instant, not longer ago than length
// and so still holding. Clocks are counted as if they were UTC, since a schedule that is
// followed in a zone with summer time leaves out the night in which its hour is missing.
func latestStart(schedule cron.Schedule, zone *time.Location, at time.Time, length time.Duration) (time.Time, bool) {
	const slack = 3 * time.Hour // more than any clock is put forward or back
	wall := asUTC(at.In(zone))
	for back := time.Hour; ; back *= 2 {
		back = min(back, length)
		var last time.Time
		for w := schedule.Next(wall.Add(-back - slack - time.Second)); !w.IsZero() && !w.After(wall.Add(slack)); w = schedule.Next(w) {
			if begin := shows(zone, w); !begin.After(at) && begin.After(last) {
				last = begin
			}
		}
		if !last.IsZero() && at.Before(last.Add(length)) {
			return last, true
		}
		if back == length {
			return time.Time{}, false
		}
	}
}

func asUTC(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// shows is when the clock of a zone shows a time for the first time; when it never does,
// it is as if it had not been put forward.
func shows(zone *time.Location, wall time.Time) time.Time {
	const far = 15 * time.Hour // offsets lie between -12 and +14 hours
	var first time.Time
	for _, near := range []time.Time{wall.Add(-far), wall.Add(far)} {
		_, offset := near.In(zone).Zone()
		begin := wall.Add(-time.Duration(offset) * time.Second)
		if first.IsZero() {
			first = begin
		}
		if asUTC(begin.In(zone)).Equal(wall) {
			return begin
		}
	}
	return first
}
