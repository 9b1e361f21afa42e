package journal

import (
	"fmt"
	"time"
)

// Admit checks who wants the lease.
func (h Holder) Admit() (Holder, error) {
	if err := checkName("the id of a holder", h.ID); err != nil {
		return Holder{}, err
	}
	h.Host = plain(h.Host)
	return h, nil
}

// Free reports whether somebody else may take the lease. One whose heartbeat lies further
// in the future than the lease lasts was given by a clock that has stepped back since: to
// wait for it could take for ever.
func (l Lease) Free(now time.Time) bool {
	return l.Holder.ID == "" || !now.Before(l.Expires) || l.Renewed.Sub(now) > l.Expires.Sub(l.Renewed)
}

// Fresh reports whether the holder gave a sign of life within so long, on either side of
// now.
func (l Lease) Fresh(now time.Time, stale time.Duration) bool {
	return now.Sub(l.Renewed).Abs() < stale
}

// String says who has the lease, for people.
func (l Lease) String() string {
	h := l.Holder
	return fmt.Sprintf("%s (process %d on %s, since %s, last heartbeat %s)", h.ID, h.PID, h.Host, h.Since.UTC().Format(time.RFC3339), l.Renewed.UTC().Format(time.RFC3339))
}
