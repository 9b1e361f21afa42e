package rehearsal

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// looks are what the meter answers about one deployment, look by look: each instant at
// which it is read takes the next word. After the last one it measures again.
type looks struct {
	words []string
	at    time.Time // of the look that took the last word
	now   string
}

// script gives a deployment its next looks.
func (m *meter) script(deployment string, words []string) {
	if m.looks == nil {
		m.looks = map[string]*looks{}
	}
	m.looks[deployment] = &looks{words: words}
}

// scripted answers with the script's word for this look, if it has one.
func (m *meter) scripted(q rollout.Query, measured rollout.Reading) (rollout.Reading, error) {
	l := m.looks[q.Deployment]
	if l == nil {
		return measured, nil
	}
	if now := m.w.engineNow(); !l.at.Equal(now) {
		l.at, l.now = now, ""
		if len(l.words) > 0 {
			l.now, l.words = l.words[0], l.words[1:]
			m.w.say("given", "the meter is asked about %s: %s", q.Deployment, l.now)
		}
	}
	switch l.now {
	case "err":
		return rollout.Reading{}, errDown
	case "fail":
		measured.Value = 1e6
	case "nodata":
		measured = rollout.Reading{Complete: true}
	}
	return measured, nil
}

// parseLooks reads what the meter answers look by look, and what is to be shown.
func parseLooks(words []string, _ string) (func(*World), error) {
	switch {
	case len(words) == 1 && words[0] == "shares":
		return func(w *World) { w.say("seen", "%s", w.routers.shares()) }, nil
	case words[0] != "looks" || len(words) < 3:
		return nil, nil //nolint:nilnil // another parser knows it
	}
	for _, word := range words[2:] {
		switch word {
		case "pass", "fail", "err", "nodata":
		default:
			return nil, fmt.Errorf("%q is not what a look comes to: pass, fail, err or nodata", word)
		}
	}
	return onSide(words[1], func(w *World, s *side) { w.meter.script(s.id, words[2:]) })
}

// shares says what each member of the endpoint is served, of all its traffic.
func (r *routers) shares() string {
	route := r.copies[0].route
	mass := func(m rollout.Member) float64 { return m.Weight * float64(m.Ready()) }
	all, outside := 0.0, 0.0
	for _, m := range route.Members {
		all += mass(m)
		if p := route.Pair; p == nil || m.Deployment != p.Source && m.Deployment != p.Target {
			outside += mass(m)
		}
	}
	var list []string
	for _, s := range r.w.sides {
		m := rollout.Member{Deployment: s.id}
		if i := slices.IndexFunc(route.Members, func(m rollout.Member) bool { return m.Deployment == s.id }); i >= 0 {
			m = route.Members[i]
		}
		share := 0.0
		switch p := route.Pair; {
		case p != nil && m.Deployment == p.Source:
			share = p.Share * float64(100-p.Percent)
		case p != nil && m.Deployment == p.Target:
			share = p.Share * float64(p.Percent)
		case p != nil && outside > 0:
			share = (1 - p.Share) * 100 * mass(m) / outside
		case p == nil && all > 0:
			share = 100 * mass(m) / all
		}
		list = append(list, fmt.Sprintf("%s %s%%", m.Deployment, strconv.FormatFloat(math.Round(share*1e6)/1e6, 'f', -1, 64)))
	}
	return "of the endpoint's traffic: " + strings.Join(list, ", ")
}
