package fleet

import "time"

// Backoff is the wait before a replica that failed starts again.
type Backoff struct {
	First      time.Duration // after the first failure, default 1 s; doubles with each further one
	Max        time.Duration // the longest wait, default 60 s
	ResetAfter time.Duration // ready for this long, a replica starts from First again; default 60 s
}

// WithDefaults fills the zero fields.
func (b Backoff) WithDefaults() Backoff {
	fill(&b.First, time.Second)
	fill(&b.Max, time.Minute)
	fill(&b.ResetAfter, time.Minute)
	return b
}

// Delay is the wait after this many failures in a row, 1 or more.
func (b Backoff) Delay(failures int) time.Duration {
	d := b.First
	for i := 1; i < failures && d < b.Max; i++ {
		d *= 2
	}
	return min(d, b.Max)
}
