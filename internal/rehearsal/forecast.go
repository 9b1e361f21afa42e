package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

// Plan is what a user rehearses: a resolved rollout, what stands, and what shall go
// wrong. PlanOf makes one of declarations and facts.
type Plan struct {
	Address  string       // sluice_rollout.x
	Endpoint string       // as people call it
	Spec     rollout.Spec // Source and Target are the parties' names
	Source   Party
	Target   Party
	Rate     float64 // requests a second on the pair
	Timings  rollout.Timings
	Faults   []Fault
}

// Party is one side of a plan.
type Party struct {
	Name      string // as people call it, for example sluice_deployment.qwen35
	Replicas  int    // ready at the start
	Bounds    rollout.Bounds
	Share     int           // percent of the pair's traffic at the start; the two add up to 100
	ColdStart Curve         // of one replica; drawn once a run and side
	Budget    time.Duration // that a cold start may take
	Drain     time.Duration // of a replica that is told to go
	Model     Model
	Pool      Pool
}

// Pool is the hardware of a side. Two sides with the same name share it.
type Pool struct {
	Name string
	Free int // further replicas that fit at the start; negative for no limit
	GPUs int // of one replica
}

// Model is how one deployment answers.
type Model struct {
	Latency   Curve
	Factor    float64 // on every latency; 1 for as it is
	ErrorRate float64 // share of answers that are 5xx, 0 to 1
}

// Forecast is one play of a plan on the real engine, up to its end or its first park.
type Forecast struct {
	Seed         uint64       `json:"seed"`
	State        string       `json:"state"` // COMPLETED, or SYSTEM_PAUSED for a park
	Took         api.Duration `json:"took"`  // from the start to the end or the park
	Parked       *Parked      `json:"parked,omitempty"`
	Steps        []StepTimes  `json:"steps"`
	PeakReplicas int          `json:"peakReplicas"` // of both sides at once
	PeakGPUs     int          `json:"peakGpus"`
	Crashes      int          `json:"crashes"`   // of the engine
	NotPlayed    []string     `json:"notPlayed"` // faults whose moment never came
	Traffic      Tally        `json:"traffic"`
	Rollout      api.Rollout  `json:"rollout"` // as the engine tells it at the end

	record rollout.Rollout
}

// Parked says where and why a play parked.
type Parked struct {
	Category string       `json:"category"`
	Message  string       `json:"message"`
	Step     int          `json:"step"` // 1-based
	At       api.Duration `json:"at"`
}

// Tally counts a play's requests by the model of its traffic: expected numbers, without
// sampling noise.
type Tally struct {
	Source int `json:"source"` // answered by the source, errors included
	Target int `json:"target"`
	Errors int `json:"errors"` // answered with 5xx by the models' error rates
	Lost   int `json:"lost"`   // no replica of either side was ready
}

// NewForecast plays a plan once. disk is a store in memory, which is cleared. The same
// plan and seed always come to the same forecast. The error says why the engine refuses
// the rollout, or that a guarantee was seen broken, which is a bug.
func NewForecast(ctx context.Context, p Plan, seed uint64, disk *store.SQLite) (Forecast, error) {
	if err := disk.Clear(ctx); err != nil {
		return Forecast{}, err
	}
	s, err := newStage(ctx, p, seed, disk)
	if err == nil {
		err = s.play() //nolint:contextcheck // the world keeps the play's
	}
	if err := errors.Join(err, s.w.close()); err != nil { //nolint:contextcheck // as above
		return Forecast{}, err
	}
	return s.forecast(), nil
}

// forecast sums up what was played.
func (s *stage) forecast() Forecast {
	r := s.told(s.w.record)
	f := Forecast{
		Seed: s.seed, State: string(r.State), Took: api.Duration(s.end().Sub(Epoch)), Steps: s.steps(r),
		Traffic: s.tally(), Crashes: s.w.stats.Crashes, NotPlayed: s.notPlayed(), Rollout: s.live(r), record: r,
	}
	if c := r.Condition; c != nil && r.State.Parked() {
		f.Parked = &Parked{Category: string(c.Category), Message: c.Message, Step: c.AtStep + 1, At: api.Duration(c.At.Sub(Epoch))}
	}
	for _, l := range s.levels {
		f.PeakReplicas = max(f.PeakReplicas, l.source.Scheduled+l.target.Scheduled)
		f.PeakGPUs = max(f.PeakGPUs, l.source.Scheduled*s.plan.Source.Pool.GPUs+l.target.Scheduled*s.plan.Target.Pool.GPUs)
	}
	return f
}

// notPlayed are the faults that still wait for their phase.
func (s *stage) notPlayed() []string {
	out := []string{}
	for _, c := range s.w.triggers {
		out = append(out, fmt.Sprintf("%s in step %d", c.text, c.step))
	}
	for _, c := range s.w.pending {
		out = append(out, c.text)
	}
	return out
}

// end is when the play came to its end or its park.
func (s *stage) end() time.Time {
	r := s.w.record
	switch {
	case r.State.Terminal():
		return r.CompletedAt
	case r.Condition != nil && r.State.Parked():
		return r.Condition.At
	}
	return s.w.now
}

// tally integrates what was served from the start to the end.
func (s *stage) tally() Tally {
	var source, target, lost float64
	end := s.end()
	for i, l := range s.levels {
		to := end
		if i+1 < len(s.levels) && s.levels[i+1].at.Before(end) {
			to = s.levels[i+1].at
		}
		for _, sp := range s.w.meter.spans {
			from, until := later(sp.from, l.at), sp.to
			if to.Before(until) {
				until = to
			}
			if !until.After(from) {
				continue
			}
			seconds := until.Sub(from).Seconds()
			a := sp.c.requests(rollout.Query{Deployment: s.w.source.id}) * seconds
			b := sp.c.requests(rollout.Query{Deployment: s.w.target.id}) * seconds
			switch { // the gateway gives the requests of a side that has none ready to the other
			case l.source.Ready+l.target.Ready == 0:
				lost += a + b
			case l.source.Ready == 0:
				target += a + b
			case l.target.Ready == 0:
				source += a + b
			default:
				source, target = source+a, target+b
			}
		}
	}
	failed := source*s.crowd.models[s.w.source.id].ErrorRate + target*s.crowd.models[s.w.target.id].ErrorRate
	return Tally{Source: whole(source), Target: whole(target), Errors: whole(failed), Lost: whole(lost)}
}

func whole(v float64) int { return int(math.Round(v)) }

// refusal is why the rollout could not be created or started.
func (s *stage) refusal() error {
	for i := len(s.w.lines) - 1; i >= 0; i-- {
		if _, text, ok := strings.Cut(s.w.lines[i], " refused "); ok {
			return fmt.Errorf("the engine refuses this rollout: %s", s.names.Replace(strings.TrimSpace(text)))
		}
	}
	return errors.New("the rollout could not be started")
}
