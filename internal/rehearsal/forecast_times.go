package rehearsal

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// StepTimes is what became of one step, and when. Times are from the start.
type StepTimes struct {
	Step    int          `json:"step"` // 1-based
	Percent int          `json:"percent"`
	State   string       `json:"state"`
	From    api.Duration `json:"from"`
	To      api.Duration `json:"to"`
	Parts   []PartTimes  `json:"parts"`
	Source  int          `json:"source"` // replicas ready at its end
	Target  int          `json:"target"`
}

// PartTimes is one part of a step's anatomy: check, scale, health, shift, propagate,
// drain, soak, gate, confirm or release. One that was done again stands there again.
type PartTimes struct {
	Part   string       `json:"part"`
	From   api.Duration `json:"from"`
	To     api.Duration `json:"to"`
	Note   string       `json:"note,omitempty"`
	Parked bool         `json:"parked,omitempty"`
}

// parts names a phase's part of the anatomy.
var parts = map[rollout.Phase]string{
	rollout.PhaseChecking: "check", rollout.PhaseScaling: "scale", rollout.PhaseShifting: "shift", rollout.PhasePropagating: "propagate",
	rollout.PhaseDraining: "drain", rollout.PhaseSoaking: "soak", rollout.PhaseGating: "gate", rollout.PhaseConfirming: "confirm", rollout.PhaseReleasing: "release",
}

// steps puts the moments that were noted together, step by step.
func (s *stage) steps(r rollout.Rollout) []StepTimes {
	var out []StepTimes
	for i, m := range s.moments {
		if len(out) == 0 || out[len(out)-1].Step != m.step+1 {
			out = append(out, StepTimes{Step: m.step + 1, Percent: r.Journey.Rungs[m.step].Percent, State: string(r.Steps[m.step].State), From: since(m.at)})
		}
		st := &out[len(out)-1]
		end := s.end()
		if i+1 < len(s.moments) && s.moments[i+1].at.Before(end) {
			end = s.moments[i+1].at
		}
		if m.at.After(end) {
			continue // what is held after a park
		}
		parked := m.state.Parked()
		if n := len(st.Parts); n > 0 && (parked || st.Parts[n-1].Part == parts[m.phase] || st.Parts[n-1].Part == "health" && m.phase == rollout.PhaseScaling) {
			st.Parts[n-1].To, st.Parts[n-1].Parked = since(end), parked
		} else {
			st.Parts = append(st.Parts, PartTimes{Part: parts[m.phase], From: since(m.at), To: since(end), Parked: parked})
		}
		st.To = since(end)
		l := s.levelAt(end)
		st.Source, st.Target = l.source.Ready, l.target.Ready
	}
	for i := range out {
		s.split(&out[i])
		s.annotate(&out[i], r)
	}
	return out
}

func since(t time.Time) api.Duration { return api.Duration(t.Sub(Epoch)) }

func (p PartTimes) length() time.Duration { return time.Duration(p.To - p.From) }

// split tells scaling, which is until the replicas have their places, from the health
// gate after it.
func (s *stage) split(st *StepTimes) {
	var out []PartTimes
	for _, p := range st.Parts {
		if p.Part != "scale" {
			out = append(out, p)
			continue
		}
		placed := p.To
		want := s.w.record.Journey.Rungs[st.Step-1].Target
		for _, l := range s.levels {
			if at := since(l.at); l.target.Scheduled >= want && at >= p.From && at < p.To {
				placed = at
				break
			}
		}
		if s.levelAt(Epoch.Add(time.Duration(p.From))).target.Scheduled >= want {
			placed = p.From
		}
		out = append(out, PartTimes{Part: "scale", From: p.From, To: placed, Parked: p.Parked && placed == p.To})
		if placed < p.To || !p.Parked {
			out = append(out, PartTimes{Part: "health", From: placed, To: p.To, Parked: p.Parked})
		}
	}
	st.Parts = out
}

// annotate says in a few words what each part did.
func (s *stage) annotate(st *StepTimes, r rollout.Rollout) {
	rung := r.Journey.Rungs[st.Step-1]
	before := r.Journey.Seed
	if st.Step > 1 {
		before = r.Journey.Rungs[st.Step-2].Percent
	}
	for i := range st.Parts {
		p := &st.Parts[i]
		l := s.levelAt(Epoch.Add(time.Duration(p.To)))
		switch p.Part {
		case "scale":
			p.Note = fmt.Sprintf("target to %d", rung.Target)
		case "health":
			p.Note = fmt.Sprintf("%d of %d ready", l.target.Ready, rung.Need)
		case "shift":
			p.Note = fmt.Sprintf("%d%% → %d%%", before, rung.Percent)
		case "drain":
			p.Note = fmt.Sprintf("source to %d", rung.Source)
		case "gate", "confirm":
			p.Note = gateNote(r, st.Step-1)
		}
	}
}

// gateNote is what the gate of a step read last.
func gateNote(r rollout.Rollout, step int) string {
	rows := r.Steps[step].Rows
	if len(rows) == 0 {
		return "no metric rule"
	}
	notes := make([]string, 0, len(rows))
	for _, row := range rows {
		notes = append(notes, rowNote(row))
	}
	return strings.Join(notes, "; ")
}

func rowNote(row rollout.Row) string {
	name := planning.MetricName(row.Rule)
	reading := ""
	if row.TargetValue != nil {
		reading = " " + measure(row.Rule.Metric, *row.TargetValue)
		if row.SourceValue != nil {
			reading += " vs " + measure(row.Rule.Metric, *row.SourceValue)
		}
	}
	verdict := strings.ToLower(string(row.Verdict))
	if row.Verdict == rollout.VerdictNone {
		verdict = "skipped: idle"
	}
	n := fmt.Sprintf("n=%d", row.TargetSamples)
	if row.Rule.Regression != nil && row.SourceSamples > 0 {
		n = fmt.Sprintf("n=%d", min(row.SourceSamples, row.TargetSamples))
	}
	note := ""
	if row.Note != "" && row.Verdict == rollout.VerdictPass {
		note = " (" + row.Note + ")"
	}
	return fmt.Sprintf("%s%s %s: %s%s", name, reading, n, verdict, note)
}

func measure(m rollout.Metric, v float64) string {
	if m == rollout.RouterLatency {
		return fmt.Sprintf("%.0f ms", v)
	}
	return fmt.Sprintf("%.4g", v)
}
