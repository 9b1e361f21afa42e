package process

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	psutil "github.com/shirou/gopsutil/v4/process"
)

// The environment that names a replica's process.
const (
	envFleet   = "SLUICE_FLEET"
	envReplica = "SLUICE_REPLICA"
)

// createdTolerance bounds how far two readings of a create time may differ: the
// system derives it from the time of boot, which a clock correction moves. No pid
// is used twice within it.
const createdTolerance = 2 * time.Second

// randomID makes an identity that no earlier fleet used.
func randomID(prefix string) string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return prefix + hex.EncodeToString(b)
}

// fleetID reads the folder's identity, or gives it one.
func fleetID(dir string) (string, error) {
	path := filepath.Join(dir, "fleet-id")
	b, err := os.ReadFile(path) //nolint:gosec // the operator's folder
	if id := strings.TrimSpace(string(b)); err == nil && id != "" {
		return id, nil
	}
	if err == nil {
		return "", fmt.Errorf("%s is empty: without it the replicas that run cannot be told from others'. Put the identity back (they have it in their environment as %s), or end them and remove the file", path, envFleet)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	id := randomID("fleet_")
	return id, writeDurably(path, []byte(id+"\n"))
}

// createdAt is the process's create time, milliseconds since 1970.
func createdAt(pid int) (int64, error) {
	p, err := psutil.NewProcess(int32(pid)) //nolint:gosec // a pid fits
	if err != nil {
		return 0, err
	}
	return p.CreateTime()
}

// runs reports whether the recorded process still runs: its pid exists, was
// created when the record says, and is not a zombie that nobody reaps.
func (r record) runs() bool {
	if r.PID <= 0 {
		return false
	}
	p, err := psutil.NewProcess(int32(r.PID)) //nolint:gosec // a pid fits
	if err != nil {
		return false
	}
	at, err := p.CreateTime()
	if err != nil || (time.Duration(at-r.Created)*time.Millisecond).Abs() > createdTolerance {
		return false
	}
	status, err := p.Status()
	return err != nil || !slices.Contains(status, psutil.Zombie)
}

// isOurs vetoes a process whose environment names another replica. One that shows
// none is not vetoed: systems hide it, and servers overwrite it with their title.
func (f *Fleet) isOurs(r record) bool {
	fleet, replica := environment(r.PID)
	return (fleet == "" || fleet == f.id) && (replica == "" || replica == r.Replica)
}

// environment reads which replica the process says it is.
func environment(pid int) (fleet, replica string) {
	p, err := psutil.NewProcess(int32(pid)) //nolint:gosec // a pid fits
	if err != nil {
		return "", ""
	}
	env, err := p.Environ()
	if err != nil {
		return "", ""
	}
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, envFleet+"="); ok {
			fleet = v
		}
		if v, ok := strings.CutPrefix(e, envReplica+"="); ok {
			replica = v
		}
	}
	return fleet, replica
}

// census finds every process of this fleet by its environment: pids by replica.
func (f *Fleet) census() (map[string][]int, error) {
	pids, err := psutil.Pids()
	if err != nil {
		return nil, err
	}
	found := make(map[string][]int)
	for _, pid := range pids {
		if int(pid) == os.Getpid() {
			continue
		}
		if fleet, replica := environment(int(pid)); fleet == f.id && replica != "" {
			found[replica] = append(found[replica], int(pid))
		}
	}
	return found, nil
}

// born completes an intent whose process was started and never recorded. It finds
// the leader by the environment, or, where that is hidden, by the command line
// and the time.
func (f *Fleet) born(r record, census map[string][]int) record {
	for _, pid := range census[r.Replica] {
		if leads(pid) {
			return r.with(pid)
		}
	}
	if len(census) > 0 {
		return r // the system shows environments, so there is no such process
	}
	pids, err := psutil.Pids()
	if err != nil {
		return r
	}
	for _, pid := range pids {
		p, err := psutil.NewProcess(pid)
		if err != nil {
			continue
		}
		argv, err := p.CmdlineSlice()
		if err != nil || hash(argv) != r.Argv || !leads(int(pid)) {
			continue
		}
		if c := r.with(int(pid)); time.UnixMilli(c.Created).After(r.Intended.Add(-createdTolerance)) && f.isOurs(c) {
			return c
		}
	}
	return r
}

// with fills in the process.
func (r record) with(pid int) record {
	if at, err := createdAt(pid); err == nil {
		r.PID, r.Created = pid, at
	}
	return r
}
