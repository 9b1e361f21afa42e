package notify

import "time"

// ReminderDue tells whether a reminder of something that has stood since an instant is
// due, and the how manieth: the n-th comes n intervals after it began. Those that were
// missed, while nobody ran, are not made up for; one that was sent at or after its time
// is not due again.
func ReminderDue(since, last time.Time, every time.Duration, now time.Time) (n int, due bool) {
	if every <= 0 || now.Before(since.Add(every)) {
		return 0, false
	}
	n = int(now.Sub(since) / every)
	return n, last.Before(since.Add(time.Duration(n) * every))
}
