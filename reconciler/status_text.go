package reconciler

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// glyphs of the phases, for the eye.
var glyphs = map[Phase]string{InStep: "✓", Waiting: "…", Applying: "●", RollingOut: "●", Parked: "‖", Ahead: "↺", Invalid: "✗", Failed: "✗"}

// Render writes the status for people: a block for each repository, a line for each stack
// and each rollout, and below it what it waits for and how to go on.
func (s Status) Render(w io.Writer, o render.Options) error {
	if h := s.Holder; h != nil && !h.Mine {
		if err := render.Line(w, h.text(s.At)+"\n", o); err != nil {
			return err
		}
	}
	for i, r := range s.Repositories {
		if i > 0 {
			if err := render.Line(w, "", o); err != nil {
				return err
			}
		}
		if err := r.render(w, o); err != nil {
			return err
		}
	}
	return nil
}

// text says who writes while this process does not. One that has died is taken over from
// when its lease ends.
func (h HolderStatus) text(now time.Time) string {
	text := fmt.Sprintf("standing by: process %d on %s writes, since %s", h.PID, render.Inert(h.Host), stamp(h.Since))
	if left := h.Expires.Sub(now).Round(time.Second); left > 0 {
		return text + fmt.Sprintf("; its lease ends in %s unless it renews it", planning.Span(left))
	}
	return text + "; its lease has ended"
}

func (r RepositoryStatus) render(w io.Writer, o render.Options) error {
	head := fmt.Sprintf("%s  %s", r.Name, r.URL)
	if r.Commit != "" {
		head += fmt.Sprintf("  %s@%s", r.Ref, short(r.Commit))
	}
	lines := []string{head}
	if r.State != "found" {
		line := "  the ref is " + r.State + ": " + render.Inert(r.Reason)
		if r.unfollowed() {
			line = "  ✗" + line[1:] + "; nothing is changed at the engine until it is there"
		}
		lines = append(lines, line)
	}
	if r.Error != "" {
		lines = append(lines, fmt.Sprintf("  ✗ %s failed in a row: %s", passes(r.Failures), r.Error))
	}
	if r.Forge != "" {
		lines = append(lines, "  ✗ the forge: "+r.Forge)
	}
	for _, k := range r.Stacks {
		lines = append(lines, k.lines(o.Now)...)
	}
	for _, l := range lines {
		if err := render.Line(w, l, o); err != nil {
			return err
		}
	}
	return nil
}

func (k StackStatus) lines(now time.Time) []string {
	head := fmt.Sprintf("  %s %s  %s", orElse(glyphs[k.Phase], "?"), k.Name, k.Phase)
	if !k.Since.IsZero() && !now.IsZero() {
		head += " for " + planning.Span(now.Sub(k.Since).Round(time.Second))
	}
	if k.Commit != "" {
		head += fmt.Sprintf("  %s %s", short(k.Commit), k.Subject)
	}
	out := []string{head}
	if k.Error != "" {
		out = append(out, "      "+k.Error)
	}
	for _, r := range k.Rollouts {
		out = append(out, "      "+r.line(now))
	}
	if k.Suspended != "" && !slices.ContainsFunc(k.Waits, func(w Wait) bool { return strings.HasPrefix(w.What, "suspended by ") }) {
		out = append(out, "      suspended by "+k.Suspended)
	}
	for _, wait := range k.Waits {
		if wait.What != k.Error {
			out = append(out, "      waits: "+wait.What)
		}
	}
	if n := len(k.Skipped); n > 0 && k.Phase != InStep {
		out = append(out, fmt.Sprintf("      overtaken, and not run for themselves: %s", joined(shorts(k.Skipped))))
	}
	if n := len(k.Queue); n > 0 {
		out = append(out, "      "+planning.Count(n, "commit")+" in the queue")
	}
	for _, d := range k.Drift {
		out = append(out, fmt.Sprintf("      drift: %s %s is %s, Git says %s", d.Address, d.Field, d.Live, d.Git))
	}
	return out
}

// shorts are commits for people.
func shorts(commits []string) []string {
	var out []string
	for _, c := range commits {
		out = append(out, short(c))
	}
	return out
}

func (r RolloutStatus) line(now time.Time) string {
	text := fmt.Sprintf("%s %s %s", r.Endpoint, r.ID, r.State)
	if r.Step > 0 {
		text += fmt.Sprintf(" step %d · %d %%", r.Step, r.Percent)
	}
	if r.Phase != "" {
		text += " · " + strings.ToLower(r.Phase)
	}
	if r.Category != "" {
		text += " · " + r.Category
	}
	if r.Reverse {
		text += " · takes an earlier one back"
	}
	if !r.Since.IsZero() && !now.IsZero() {
		text += " · for " + planning.Span(now.Sub(r.Since).Round(time.Second))
	}
	return text
}

func passes(n int) string {
	if n == 1 {
		return "1 pass"
	}
	return fmt.Sprintf("%d passes", n)
}
