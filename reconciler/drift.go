package reconciler

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
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

// awayLines are the differences that are no field of a change: a thing that somebody has
// deleted, and a split that is not the one which a completed rollout left. Neither starts
// anything, and the split is never put back: it may be a person's answer to an outage.
func (p *stackPass) awayLines(c planning.Change) []driftLine {
	address := c.Address.String()
	if c.Action == planning.Create && p.vanished(c) && !p.asksNow() {
		return []driftLine{{Address: address, Field: "existence", Git: "declared", Live: "deleted at the engine"}}
	}
	if c.Kind != declaration.RolloutKind || c.Live == nil || c.Live.State != engineclient.StateCompleted {
		return nil
	}
	for _, e := range p.plan.changes.Standing.Endpoints {
		if e.ID != c.EndpointID || planning.Newest(slices.Concat(e.Rollouts, e.Past)).ID != c.Live.ID {
			continue
		}
		source, target := planning.ShareIn(e.TrafficSplit, e.All, c.Live.SourceDeploymentID), planning.ShareIn(e.TrafficSplit, e.All, c.Live.TargetDeploymentID)
		if source > 0 {
			return []driftLine{{Address: address, Field: "traffic split", Git: "all on its target, as it left it", Live: fmt.Sprintf("%.0f %% on its source, %.0f %% on its target", 100*source, 100*target)}}
		}
	}
	return nil
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
