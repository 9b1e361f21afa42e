package engine

import "time"

// leastStretch is the shortest time over which a rate is told.
const leastStretch = time.Second

// Rates are the requests a second of deployments that share their traffic, in the order
// given. All are counted over one stretch, so that their sum is right while traffic
// moves between them: the window, or, when the traffic of all of them began inside it,
// the time since then. Traffic that is ten seconds old is young and not thin; a single
// request, which tells no rate, still counts over the window.
func (e *Engine) Rates(window time.Duration, deployments ...string) []Rate {
	rates := make([]Rate, 0, len(deployments))
	var first time.Time
	requests := int64(0)
	for _, d := range deployments {
		r := e.Meter.Rate(d, window)
		if !r.Since.IsZero() && (first.IsZero() || r.Since.Before(first)) {
			first = r.Since
		}
		requests += r.Requests
		rates = append(rates, r)
	}
	age := max(e.Now().Sub(first), leastStretch)
	if first.IsZero() || age >= window || requests == 0 {
		return rates
	}
	each := float64(requests-1) / float64(requests) / age.Seconds() // the first one began the time
	for i := range rates {
		rates[i].PerSecond = max(rates[i].PerSecond, float64(rates[i].Requests)*each)
	}
	return rates
}
