package rehearsal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// Report is all that sluice rehearse says of a plan. Its JSON is documented in
// docs/rehearse.md.
type Report struct {
	Address  string              `json:"address"`
	Source   string              `json:"source"`
	Target   string              `json:"target"`
	Facts    string              `json:"facts"` // where they are from
	Virtual  bool                `json:"virtual"`
	Assumed  []string            `json:"assumed"` // what no fact tells
	Faults   []string            `json:"faults"`
	Rate     float64             `json:"requestRate"`
	Forecast Forecast            `json:"forecast"`
	Needs    []planning.GateNeed `json:"needs"`
	Outlook  *Outlook            `json:"outlook,omitempty"`
}

// NewReport puts a report together. outlook is nil for a single run.
func NewReport(p Plan, f Forecast, outlook *Outlook) Report {
	return Report{
		Address: p.Address, Source: p.Source.Name, Target: p.Target.Name, Virtual: true, Assumed: []string{}, Faults: []string{},
		Rate: p.Rate, Forecast: f, Needs: p.Needs(f), Outlook: outlook,
	}
}

// Write prints a report for a person: the timeline, the rollout as the live view shows
// it at the end, the sums, and what the gates need.
func (r Report) Write(w io.Writer, o render.Options) error {
	p := &page{w: w, o: o}
	p.line("rehearsal of %s  %s → %s", r.Address, r.Source, r.Target)
	p.line("virtual time; nothing was touched; facts from %s; seed %d", r.Facts, r.Forecast.Seed)
	for _, a := range r.Assumed {
		p.line("! %s", a)
	}
	for _, f := range r.Faults {
		p.line("fault: %s", f)
	}
	for _, f := range r.Forecast.NotPlayed {
		p.line("! not played, since it ended before: %s", f)
	}
	p.line("")
	p.table(r.timeline())
	p.line("")
	p.live(r.Forecast)
	p.line("")
	p.table(r.sums())
	p.needs(r)
	p.outlook(r.Outlook)
	return p.err
}

// page writes and keeps the first error.
type page struct {
	w   io.Writer
	o   render.Options
	err error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		p.err = render.Line(p.w, render.Inert(fmt.Sprintf(format, args...)), p.o)
	}
}

func (p *page) table(rows [][]string) {
	if p.err == nil {
		p.err = render.Table(p.w, rows, p.o)
	}
}

// stamp is a time from the start, "+3:57".
func stamp(d api.Duration) string {
	return clock(Epoch.Add(time.Duration(d).Round(time.Second)))
}

// timeline is a row a part of each step.
func (r Report) timeline() [][]string {
	rows := [][]string{{"step", "part", "from", "to", "took", ""}}
	for _, st := range r.Forecast.Steps {
		name := fmt.Sprintf("%d  %d%%", st.Step, st.Percent)
		for _, part := range st.Parts {
			took, note := "", part.Note
			if part.To > part.From {
				took = render.Waited(part.length())
			}
			if part.Parked {
				note = strings.TrimPrefix(note+" ‖ parked", " ")
			}
			rows = append(rows, []string{name, part.Part, stamp(part.From), stamp(part.To), took, note})
			name = ""
		}
	}
	return rows
}

// live shows the rollout as sluice get would at that moment. Instants of a clock that
// nobody has are left to the lines around it.
func (p *page) live(f Forecast) {
	if p.err != nil {
		return
	}
	o := p.o
	o.Now = Epoch.Add(time.Duration(f.Took))
	view := f.Rollout
	view.PauseInfo = nil // the park stands in the condition
	if view.Sluice != nil {
		x := *view.Sluice
		x.RetryAt, x.RetryUntil = nil, nil
		view.Sluice = &x
	}
	p.err = render.Rollout(p.w, view, o)
	if x := f.Rollout.Sluice; f.Parked != nil && x != nil && x.RetryAt != nil && x.RetryUntil != nil {
		p.line("  the engine would try again by itself at %s, and give up at %s; that is not played", stamp(since(x.RetryAt.Time)), stamp(since(x.RetryUntil.Time)))
	}
}

func (r Report) sums() [][]string {
	f := r.Forecast
	end := "completes"
	if f.Parked != nil {
		end = fmt.Sprintf("parks at step %d: %s", f.Parked.Step, f.Parked.Category)
	}
	t := f.Traffic
	rows := [][]string{
		{"ends", stamp(f.Took), end},
		{"peak", planning.Count(f.PeakGPUs, "GPU"), planning.Count(f.PeakReplicas, "replica") + " of both sides at once"},
		{"requests", strconv.Itoa(t.Source + t.Target + t.Lost), fmt.Sprintf("%d by the source, %d by the target (%d of both with a 5xx), %d lost", t.Source, t.Target, t.Errors, t.Lost)},
	}
	if f.Crashes > 0 {
		rows = append(rows, []string{"crashes", strconv.Itoa(f.Crashes), "the engine died, started anew and went on where it was"})
	}
	return rows
}

func (p *page) needs(r Report) {
	if len(r.Needs) == 0 {
		return
	}
	p.line("")
	p.line("what the gates need, at %s requests a second:", planning.RateText(r.Rate))
	rows := [][]string{{"step", "gate", "samples", "window", "smallest rate", "for 95 of 100", ""}}
	for _, n := range r.Needs {
		rows = append(rows, []string{
			strconv.Itoa(n.Step), n.Rule, fmt.Sprintf("%d of the %s's %d%%", n.Samples, n.Side, n.Share), render.Waited(time.Duration(n.Window)),
			planning.RateText(n.Average) + "/s", planning.RateText(n.Sure) + "/s", n.Verdict,
		})
	}
	p.table(rows)
	for _, n := range r.Needs {
		if n.Verdict != planning.Enough {
			p.line("! %s", n.Text(r.Rate))
		}
	}
}

func (p *page) outlook(o *Outlook) {
	if o == nil {
		return
	}
	p.line("")
	p.line("%d runs, each with another seed:", o.Runs)
	rows := [][]string{{"", "runs", "min", "p50", "p95", "max"}}
	if o.Took != nil {
		rows = append(rows, spreadRow("completes", o.Completed, *o.Took))
	}
	if o.ParkedAt != nil {
		rows = append(rows, spreadRow("parks", o.Runs-o.Completed, *o.ParkedAt))
	}
	p.table(rows)
	for _, c := range o.Parks {
		p.line("%.1f %% park %s at step %d (for example --seed %d)", c.Share*100, c.Category, c.Step, c.Seed)
	}
}

func spreadRow(name string, runs int, s Spread) []string {
	return []string{name, strconv.Itoa(runs), stamp(s.Min), stamp(s.P50), stamp(s.P95), stamp(s.Max)}
}
