package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// child is one process of a replica, born here or adopted.
type child struct {
	record
	exited   chan struct{} // closed once it is gone and its group with it
	how      string        // it ended; set before exited closes
	answered time.Time     // an adopted one did when it was taken over; zero otherwise
}

// spawn starts the replica's process. The intent is on disk before the fork, the
// whole record before the process counts as started.
func (f *Fleet) spawn(replica string) (*child, error) {
	f.mu.Lock()
	rep, w, known := f.roster.Find(replica)
	f.mu.Unlock()
	if !known {
		return nil, fmt.Errorf("replica %s is not wanted any more", replica)
	}
	port, err := f.reservePort(replica)
	if err != nil {
		return nil, err
	}
	c := &child{record: intent(rep, w, port), exited: make(chan struct{})}
	f.noteConfig(c.record)
	if err := f.launch(c, w); err != nil {
		f.releasePort(port)
		return nil, err
	}
	return c, nil
}

// noteConfig remembers what the replica's process was started with.
func (f *Fleet) noteConfig(r record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if keeper := f.runners[r.Replica]; keeper != nil {
		keeper.config = r.Config
	}
}

// intent is the record before the process exists.
func intent(rep rollout.Replica, w rollout.Workload, port int) record {
	c := w.Config
	return record{
		Replica: rep.ID, Deployment: rep.Deployment, Model: w.Model, Hardware: c.Hardware, GPUs: rep.GPUs,
		Port: port, Intended: time.Now(), Restarts: rep.Restarts,
		Config: configHash(w), Argv: hash(argv(rep.ID, w, port)),
		Probe: c.Probe, ColdStart: c.ColdStart, DrainTimeout: c.DrainTimeout, StopTimeout: c.StopTimeout,
	}
}

// launch forks and records. A process that cannot be recorded is ended: nobody
// would find it after a crash.
func (f *Fleet) launch(c *child, w rollout.Workload) error {
	args := argv(c.Replica, w, c.Port)
	if len(args) == 0 {
		return fmt.Errorf("config %s has no command", w.Config.ID)
	}
	if err := f.records.put(c.record); err != nil {
		return err
	}
	log, err := f.logs.open(c.Replica)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()                                     // the process has its own descriptor
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...) //nolint:gosec // the operator's command
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.Config.Dir, f.environ(c.record, w), log, log
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	c.record = c.with(cmd.Process.Pid) // before it is reaped: until then the pid is its own, even when it has ended
	go c.await(cmd)
	if c.PID == 0 {
		err = fmt.Errorf("the create time of process %d cannot be read", cmd.Process.Pid)
	} else {
		err = f.records.put(c.record)
	}
	if err != nil {
		_ = forceEnd(cmd.Process.Pid)
		<-c.exited
	}
	return err
}

// await reaps the process. It outlives a fleet that leaves its replicas.
func (c *child) await(cmd *exec.Cmd) {
	_ = reap(cmd) // how it ended is in the state
	c.how = cmd.ProcessState.String()
	close(c.exited)
}

// watchAdopted polls a process that is not our child until it is gone, or the
// fleet leaves it, and then ends the workers that it left behind. The record is a
// copy, since the runner writes to the child's own.
func (f *Fleet) watchAdopted(c *child, born record) {
	tick := time.NewTicker(f.cfg.PollInterval)
	defer tick.Stop()
	for born.runs() {
		select {
		case <-tick.C:
		case <-f.left.Done():
			return
		}
	}
	if found, err := f.census(); err == nil {
		for _, pid := range found[born.Replica] {
			_ = endOne(pid)
		}
	}
	c.how = "no longer running"
	close(c.exited)
}

// endOne kills one process that the census found.
func endOne(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

// argv is the command line with its placeholders replaced.
func argv(replica string, w rollout.Workload, port int) []string {
	fill := strings.NewReplacer("{port}", strconv.Itoa(port), "{model}", w.Model,
		"{deployment}", w.Deployment, "{replica}", replica)
	list := make([]string, 0, len(w.Config.Command))
	for _, a := range w.Config.Command {
		list = append(list, fill.Replace(a))
	}
	return list
}

// environ is the server's own environment without its SLUICE_ settings, which may
// be secrets, then the config's, then what names the replica.
func (f *Fleet) environ(r record, w rollout.Workload) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "SLUICE_") })
	for k, v := range w.Config.Env {
		env = append(env, k+"="+v)
	}
	env = append(env, "PORT="+strconv.Itoa(r.Port), "SLUICE_MODEL="+w.Model,
		"SLUICE_DEPLOYMENT="+r.Deployment, envReplica+"="+r.Replica, envFleet+"="+f.id)
	if len(r.GPUs) > 0 {
		gpus := make([]string, 0, len(r.GPUs))
		for _, g := range r.GPUs {
			gpus = append(gpus, strconv.Itoa(g))
		}
		env = append(env, "CUDA_VISIBLE_DEVICES="+strings.Join(gpus, ","))
	}
	return env
}
