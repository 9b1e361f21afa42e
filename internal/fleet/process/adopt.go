package process

import (
	"context"
	"fmt"
	"slices"
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
		f.adopt(rec)
	}
	return nil
}

// adopt keeps a process that runs. One that was draining goes on with that.
func (f *Fleet) adopt(rec record) {
	rep := rollout.Replica{
		ID: rec.Replica, Deployment: rec.Deployment, Address: address(rec.Port), GPUs: rec.GPUs, Restarts: rec.Restarts,
		State: rollout.ReplicaStarting, Since: time.Now(), Message: "Runs from before; asking whether it is ready",
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
	c := &child{record: rec, exited: make(chan struct{})}
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
