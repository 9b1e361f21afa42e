package process

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// strayGrace is how long a process that no record names may take to end.
const strayGrace = 5 * time.Second

// adoptAll takes over what runs of an earlier fleet on this folder and removes
// the records of what does not.
func (f *Fleet) adoptAll() error {
	list, damaged, err := f.records.all()
	if err != nil {
		return err
	}
	for _, name := range damaged {
		f.cfg.Logger.Error("a record cannot be read; its process, if any, is ended as a stray", "file", name)
	}
	var census map[string][]int
	if slices.ContainsFunc(list, func(r record) bool { return r.PID == 0 }) {
		if census, err = f.census(); err != nil {
			return fmt.Errorf("looking for processes: %w", err)
		}
	}
	var running []record
	for _, rec := range list {
		if rec.PID == 0 {
			rec = f.born(rec, census)
		}
		if !rec.runs() || !f.isOurs(rec) {
			f.dropRecord(rec.Replica)
			continue
		}
		if err := f.records.put(rec); err != nil {
			return err
		}
		running = append(running, rec)
	}
	for i, err := range f.askAll(running) {
		f.adopt(running[i], err)
	}
	return nil
}

// askAll probes what runs, side by side and before anybody is told of it: whoever
// asks the fleet first must not find a deployment that serves without a ready
// replica.
func (f *Fleet) askAll(running []record) []error {
	answers := make([]error, len(running))
	var wg sync.WaitGroup
	for i, rec := range running {
		wg.Go(func() { answers[i] = f.prober.ask(f.hurried, rec.Port, rec.Probe) })
	}
	wg.Wait()
	return answers
}

// adopt keeps a process that runs, ready if it just answered. One that was draining
// goes on with that.
func (f *Fleet) adopt(rec record, answer error) {
	rep := rollout.Replica{
		ID: rec.Replica, Deployment: rec.Deployment, Address: address(rec.Port), GPUs: rec.GPUs, Restarts: rec.Restarts,
		State: rollout.ReplicaReady, Since: time.Now(),
	}
	c := &child{record: rec, exited: make(chan struct{}), answered: rep.Since}
	if answer != nil {
		rep.State, rep.Message, c.answered = rollout.ReplicaStarting, "Runs from before, but "+answer.Error(), time.Time{}
	}
	w := rollout.Workload{Deployment: rec.Deployment, Model: rec.Model, Config: rec.serving()}
	if rec.Draining {
		rep.State, rep.Message = rollout.ReplicaDraining, "Finishing the requests in flight"
	}
	f.cfg.Logger.Info("adopted a replica", "replica", rec.Replica, "deployment", rec.Deployment, "pid", rec.PID, "port", rec.Port)
	f.mu.Lock()
	f.roster.Adopt(rep, w)
	f.ports[rec.Port] = rec.Replica
	r := f.runner(rep)
	r.config = rec.Config
	f.mu.Unlock()
	if rec.Draining {
		r.order(fleet.Order{Verb: fleet.Drain, Replica: rep, Workload: w})
	}
	f.routines.Go(func() { f.watchAdopted(c, rec) })
	go f.supervise(r, c)
}

// Reconcile ends what nobody wants: adopted replicas of deployments that were
// neither ensured nor are in wanted, and processes of this fleet that no record
// names. The engine calls it once at its start, after it ensured everything. It
// waits for strays, at most some seconds, not for replicas.
func (f *Fleet) Reconcile(ctx context.Context, wanted []string) error {
	err := f.command(func() error {
		for _, name := range f.roster.Unclaimed() {
			if !slices.Contains(wanted, name) {
				f.cfg.Logger.Info("ending the replicas of a deployment that is not wanted", "deployment", name)
				f.roster.Remove(name)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return f.endStrays(ctx)
}

// endStrays asks unrecorded processes to end, waits a little, and kills them.
func (f *Fleet) endStrays(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, strayGrace)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for asked := false; ; asked = true {
		strays, err := f.strays()
		if err != nil || len(strays) == 0 {
			return err
		}
		for _, pid := range strays {
			switch {
			case ctx.Err() != nil:
				_ = endOne(pid) // it may have ended by itself meanwhile
			case !asked && leads(pid):
				f.cfg.Logger.Warn("ending a process that no record names", "pid", pid)
				_ = askToEnd(pid)
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// strays are the pids of this fleet's processes whose replica no runner keeps.
func (f *Fleet) strays() ([]int, error) {
	found, err := f.census()
	if err != nil {
		return nil, fmt.Errorf("looking for strays: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []int
	for replica, pids := range found {
		if f.runners[replica] == nil {
			list = append(list, pids...)
		}
	}
	return list, nil
}
