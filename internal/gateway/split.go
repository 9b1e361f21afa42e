package gateway

import (
	"math"
	"math/rand/v2"
)

// mix is the finaliser of MurmurHash3. The share is read off the top bits, and a
// hash whose top bits are weak gave 30 % of close keys to a share of 10 %; the
// finaliser makes that independent of the hash, and gives each member its own
// draw from one point.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return h
}

// pairSeed separates the draw for the pair from the draw within it, so that the
// two are independent and the sets of a growing target nest whatever the pair's
// share is.
const pairSeed = 0x9e3779b97f4a7c15

// point places a request on [0, 2^64): the hash of its sticky key under the
// endpoint's salt, the same in every process, or a random point without a key.
func (e *endpoint) point(c *call) uint64 {
	if len(c.key) == 0 {
		return rand.Uint64() //nolint:gosec // a draw, not a secret
	}
	d := e.salted
	_, _ = d.Write(c.key) // never fails
	return mix(d.Sum64())
}

// choose decides which member a point belongs to. It returns nil for an endpoint
// that sends nothing anywhere.
func (e *endpoint) choose(point uint64) *member {
	if e.target == nil {
		return race(e.others, point)
	}
	if share := e.route.Pair.Share; share < 1 && mix(point^pairSeed) >= e.pairBelow {
		// Without capacity outside the pair, the pair gets all.
		if other := race(e.others, point); other != nil && len(other.ready) > 0 {
			return other
		}
	}
	switch percent := e.route.Pair.Percent; {
	case percent == 0:
		return e.source
	case percent == 100:
		return e.target
	case point < e.targetBelow:
		return e.target
	default:
		return e.source
	}
}

// race picks a member by weight × ready replicas: each draws a time from an
// exponential distribution whose rate is its share, and the first wins. The
// draws of a point are fixed, so a member that gains weight only takes points
// from others and one that loses weight only gives them away. When no member has
// a ready replica, the weights alone decide whose failure it is. Members without
// weight never win.
func race(members []*member, point uint64) *member {
	var winner, idle *member
	first, firstIdle := math.Inf(1), math.Inf(1)
	for _, m := range members {
		if m.weight <= 0 {
			continue
		}
		draw := -math.Log((float64(mix(point^m.seed)>>11)+0.5)/(1<<53)) / m.weight
		if n := len(m.ready); n > 0 {
			if t := draw / float64(n); t < first || winner == nil {
				winner, first = m, t
			}
		} else if draw < firstIdle || idle == nil {
			idle, firstIdle = m, draw
		}
	}
	if winner == nil {
		return idle
	}
	return winner
}

// pick takes in the request at the less loaded of two random ready replicas, or
// at any that may still take one. Those in tried and the ejected ones are passed over,
// but for a probe. The second result is false when none is left.
func (m *member) pick(tried []*replica) (station, bool) {
	n := len(m.ready)
	if n == 0 {
		return station{}, false
	}
	a := rand.IntN(n) //nolint:gosec // a draw, not a secret
	if n > 1 {
		b := rand.IntN(n - 1) //nolint:gosec // a draw, not a secret
		if b >= a {
			b++
		}
		if m.ready[b].load(tried) < m.ready[a].load(tried) {
			a = b
		}
	}
	for i := range n {
		s := m.ready[(a+i)%n]
		if among(tried, s.replica) || !s.replica.acquire() {
			continue
		}
		var ok bool
		if s.errand, ok = s.replica.health.admit(); ok {
			return s, true
		}
		s.replica.release()
	}
	return station{}, false
}

// load is what two replicas are compared by. One that would be passed over counts as
// full: else the one after it in the list would get its requests on top of its own.
func (s station) load(tried []*replica) int {
	if among(tried, s.replica) || s.replica.health.away() {
		return math.MaxInt
	}
	return s.replica.inflight()
}

// resort takes in the request at a random replica, be it ejected.
func (m *member) resort(tried []*replica) (station, bool) {
	n := len(m.ready)
	if n == 0 {
		return station{}, false
	}
	a := rand.IntN(n) //nolint:gosec // a draw, not a secret
	for i := range n {
		s := m.ready[(a+i)%n]
		if !among(tried, s.replica) && s.replica.acquire() {
			s.errand = errandResort
			return s, true
		}
	}
	return station{}, false
}

func among(tried []*replica, r *replica) bool {
	for _, t := range tried {
		if t == r {
			return true
		}
	}
	return false
}

// member returns the endpoint's deployment, or nil.
func (e *endpoint) member(deployment string) *member {
	for _, m := range e.members {
		if m.deployment == deployment {
			return m
		}
	}
	return nil
}

// after lists the members that may answer in place of one that has no replica
// left: the other side of its pair first, then the rest of those that get
// traffic at all.
func (e *endpoint) after(chosen string) []*member {
	var ms []*member
	partner := e.partner(chosen)
	if partner != nil {
		ms = append(ms, partner)
	}
	for _, m := range e.members {
		if m.deployment != chosen && m != partner && (m.weight > 0 || m == e.source || m == e.target) {
			ms = append(ms, m)
		}
	}
	return ms
}

// partner returns the other side of the pair, nil for one that is in none.
func (e *endpoint) partner(deployment string) *member {
	switch {
	case e.target == nil:
		return nil
	case e.source.deployment == deployment:
		return e.target
	case e.target.deployment == deployment:
		return e.source
	default:
		return nil
	}
}
