package reconciler

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// noteDrift records what stands otherwise than Git says and Git has not made so, and
// tells it once for each new difference. It never writes to the engine: what is to be put
// right is a change like any other (todo), never against a rollout or its lock.
func (p *stackPass) noteDrift() {
	var lines []driftLine
	for _, c := range p.plan.changes.List {
		if c.BlockedBy != "" { // what a rollout holds is moved by it
			continue
		}
		lines = append(lines, p.awayLines(c)...)
		if c.Action != planning.Update || !p.theirs(c) && p.current() != nil { // the rest is being made
			lines = append(lines, theirLines(c)...)
			continue
		}
		lines = append(lines, allLines(c)...)
	}
	lines = append(lines, p.splitLines()...)
	p.s.Drift = lines
	key := driftKey(lines)
	if key == p.s.DriftKey {
		return
	}
	p.s.DriftKey = key
	if len(lines) == 0 {
		return
	}
	text := fmt.Sprintf("%s: live is not what Git says, and Git has not made it so", p.k)
	for i, l := range lines {
		if i == 5 {
			text += fmt.Sprintf("; and %d more", len(lines)-5)
			break
		}
		text += fmt.Sprintf("; %s %s is %s, Git says %s", l.Address, l.Field, l.Live, l.Git)
	}
	if p.config.Drift == CorrectDrift {
		text += ". It is put right where no rollout holds it"
	}
	p.tell(&p.batch, happening{Key: []string{p.k.Stack, key}, Kind: "drift.seen", Stack: p.k.Stack, Commit: p.s.Commit.ID, Severity: warning, Text: text})
}

// awayLines are the things that somebody has deleted. That starts nothing.
func (p *stackPass) awayLines(c planning.Change) []driftLine {
	if c.Action == planning.Create && p.vanished(c) && !p.asksNow() {
		return []driftLine{{Address: c.Address.String(), Field: "existence", Git: "declared", Live: "deleted at the engine"}}
	}
	return nil
}

// splitLines are the splits that are not those which the newest rollouts have left, the way
// back among them. They are never put back: a split by hand may be a person's answer to an
// outage.
func (p *stackPass) splitLines() []driftLine {
	var out []driftLine
	for _, e := range p.plan.changes.Standing.Endpoints {
		last := planning.Newest(slices.Concat(e.Rollouts, e.Past))
		address, ours := p.addressOn(e.ID)
		if !ours || last.ID == "" {
			continue
		}
		source, target := planning.ShareIn(e.TrafficSplit, e.All, last.SourceDeploymentID), planning.ShareIn(e.TrafficSplit, e.All, last.TargetDeploymentID)
		var left string
		switch {
		case last.State == engineclient.StateCompleted && source > 0:
			left = fmt.Sprintf("all on the target of %s, as that left it", last.ID)
		case last.State == engineclient.StateCanceled && last.CurrentTrafficPercent != nil && source+target > 0 && math.Abs(100*target/(source+target)-float64(*last.CurrentTrafficPercent)) > 1:
			left = fmt.Sprintf("%d %% on the target of %s, as its cancel left it", *last.CurrentTrafficPercent, last.ID)
		default:
			continue
		}
		out = append(out, driftLine{Address: address, Field: "traffic split", Git: left, Live: fmt.Sprintf("%.0f %% on its source, %.0f %% on its target", 100*source, 100*target)})
	}
	return out
}

// addressOn is an address of this stack's on an endpoint: a rollout's, else any.
func (p *stackPass) addressOn(endpoint string) (string, bool) {
	address := ""
	for _, c := range p.plan.changes.List {
		if c.EndpointID == endpoint && (address == "" || c.Kind == declaration.RolloutKind) {
			address = c.Address.String()
		}
	}
	return address, address != ""
}

// theirLines are the differences that somebody else has made.
func theirLines(c planning.Change) []driftLine {
	var out []driftLine
	for _, f := range c.Fields {
		if f.Whose == planning.Theirs {
			out = append(out, lineOf(c, f))
		}
	}
	return out
}

func allLines(c planning.Change) []driftLine {
	var out []driftLine
	for _, f := range c.Fields {
		if f.Whose != planning.Yours {
			out = append(out, lineOf(c, f))
		}
	}
	return out
}

func lineOf(c planning.Change, f planning.FieldChange) driftLine {
	return driftLine{Address: c.Address.String(), Field: f.Path, Git: shownValue(f.After), Live: shownValue(f.Before)}
}

func shownValue(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	return render.Inert(clip(string(raw), 200))
}

func driftKey(lines []driftLine) string {
	if len(lines) == 0 {
		return ""
	}
	b, err := json.Marshal(lines)
	if err != nil {
		return "unreadable"
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// RenderDrift writes the differences that Git has not made, one a row.
func RenderDrift(w io.Writer, lines []driftLine, o render.Options) error {
	if len(lines) == 0 {
		_, err := io.WriteString(w, "no drift\n")
		return err
	}
	rows := [][]string{{"ADDRESS", "FIELD", "GIT", "LIVE"}}
	for _, l := range lines {
		rows = append(rows, []string{l.Address, l.Field, l.Git, l.Live})
	}
	return render.Table(w, rows, o)
}
