package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// progressLine is one line of a progress file: what a poll found new.
type progressLine struct {
	Time      time.Time `json:"time"` // UTC
	Rollout   string    `json:"rollout"`
	Endpoint  string    `json:"endpoint"`
	Step      *int      `json:"step"`       // from 1; null before the start
	Of        int       `json:"of"`         // steps
	Phase     string    `json:"phase"`      // inside the step; empty where the engine does not tell
	Percent   int       `json:"percent"`    // of the pair's traffic on the target
	State     string    `json:"state"`      // without prefix
	NextEvent string    `json:"next_event"` // what is due next; empty where the engine does not tell
	Elapsed   float64   `json:"elapsed_seconds"`
}

// progressLineOf tells a change.
func progressLineOf(c engineclient.Change, now time.Time) progressLine {
	r := c.After
	l := progressLine{
		Time: now.UTC(), Rollout: r.ID, Endpoint: r.EndpointID, Of: r.Status.TotalSteps, Percent: percentOf(r),
		State: engineclient.Short(r.State), Elapsed: c.Elapsed.Round(time.Millisecond).Seconds(),
	}
	if r.CurrentStep != nil {
		step := *r.CurrentStep + 1
		l.Step = &step
	}
	if x := r.Sluice; x != nil {
		l.Phase, l.NextEvent = x.Phase, x.NextEvent
	}
	return l
}

// progressFile is a file of JSON lines, one a change, that a person follows with tail
// -f while an apply waits. It is opened for each line: a folder that appears later, or
// a file that was moved away, is found again. Several rollouts and several processes
// share one file, each line written at once and whole.
type progressFile struct {
	path string

	mu   sync.Mutex
	torn bool  // the last line may have been cut off
	bad  error // the first failure, told once
	told bool
}

// write appends a line. A failure costs the line and is kept for one warning.
func (f *progressFile) write(ctx context.Context, l progressLine) {
	text, err := json.Marshal(l)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		err = f.append(append(text, '\n'))
	}
	if err != nil && f.bad == nil {
		f.bad = err
		tflog.Warn(ctx, fmt.Sprintf("progress_file is not written: %v", err))
	}
}

func (f *progressFile) append(line []byte) (err error) {
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	if f.torn { // end what a full disk cut off, so that this line is whole
		line = append([]byte{'\n'}, line...)
	}
	n, err := file.Write(line)
	f.torn = err != nil && (n > 0 || f.torn)
	if err == nil && n < len(line) {
		return io.ErrShortWrite
	}
	return err
}

// warn tells the first failure, once.
func (f *progressFile) warn(diags *diag.Diagnostics) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bad == nil || f.told {
		return
	}
	f.told = true
	diags.AddWarning("The progress file is not written", fmt.Sprintf("%v. The apply did not depend on it. Check progress_file in the provider block or SLUICE_PROGRESS_FILE.", f.bad))
}

// reporting is where the progress of a wait goes: Terraform's log, the progress file, and
// what an action shows.
type reporting struct {
	ctx   context.Context //nolint:containedctx // of one wait, as long as the sink
	file  *progressFile   // nil for none
	shown func(string)    // nil for none
}

// progressOf is the sink of a wait.
func (e *engine) progressOf(ctx context.Context) reporting {
	return reporting{ctx: ctx, file: e.progress}
}

// Changed tells what a poll found new.
func (t reporting) Changed(c engineclient.Change) {
	logged(t.ctx).Changed(c)
	if t.file != nil {
		t.file.write(t.ctx, progressLineOf(c, time.Now()))
	}
	if t.shown != nil {
		t.shown(sentenceOf(c))
	}
}

// Lost tells that polls fail and the wait goes on.
func (t reporting) Lost(err error, elapsed time.Duration) {
	logged(t.ctx).Lost(err, elapsed)
	if t.shown != nil {
		t.shown(fmt.Sprintf("the engine does not answer since %s, still trying", elapsed.Round(time.Second)))
	}
}
