package reconciler

import "time"

// refusedWrite is what the forge would not take.
type refusedWrite struct {
	err   error
	again time.Time
}

// againAfter is how long a write that the forge has refused is not tried again. What it is
// about may be mended, so that it is not given up.
const againAfter = 30 * time.Minute

// mostRefused bounds how many such writes are remembered.
const mostRefused = 1000

// unlessRefused makes a write at the forge, or tells again why it was refused, when that is
// not long ago: the same thing is not sent in each pass for days.
func (f *follower) unlessRefused(what string, write func() error) error {
	if was, ok := f.pulls.refused[what]; ok && f.now().Before(was.again) {
		return was.err
	}
	err := write()
	switch {
	case !refusedForGood(err):
		delete(f.pulls.refused, what)
	case len(f.pulls.refused) >= mostRefused:
		clear(f.pulls.refused)
	}
	if refusedForGood(err) && f.pulls.refused != nil {
		f.pulls.refused[what] = refusedWrite{err, f.now().Add(againAfter)}
	}
	return err
}
