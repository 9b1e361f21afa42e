package process

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// record is what a later fleet must know to take a replica over. PID 0 is an
// intent: the process may or may not have been born.
type record struct {
	Replica      string        `json:"replica"`
	Deployment   string        `json:"deployment"`
	Model        string        `json:"model"`
	Hardware     string        `json:"hardware"`
	GPUs         []int         `json:"gpus,omitempty"`
	Port         int           `json:"port"`
	PID          int           `json:"pid"`
	Created      int64         `json:"created"`  // of the process, milliseconds since 1970
	Intended     time.Time     `json:"intended"` // when the start was decided
	Draining     bool          `json:"draining"`
	Restarts     int           `json:"restarts"`
	Config       string        `json:"config"` // hash of what the process was started with
	Argv         string        `json:"argv"`   // hash of its command line
	Probe        rollout.Probe `json:"probe"`
	ColdStart    time.Duration `json:"coldStart"`
	DrainTimeout time.Duration `json:"drainTimeout"`
	StopTimeout  time.Duration `json:"stopTimeout"`
}

// serving is the part of the config that the process was started with and that
// running it on needs.
func (r record) serving() rollout.ServingConfig {
	return rollout.ServingConfig{
		Hardware: r.Hardware, Probe: r.Probe,
		ColdStart: r.ColdStart, DrainTimeout: r.DrainTimeout, StopTimeout: r.StopTimeout,
	}
}

// hash names a value by its JSON.
func hash(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// configHash names what a replica's process depends on.
func configHash(w rollout.Workload) string {
	return hash([]any{w.Model, w.Config.Hardware, w.Config.Command, w.Config.Env, w.Config.Dir})
}

// records keeps one JSON file a replica.
type records struct{ dir string }

// path is the replica's file.
func (s records) path(replica string) string { return filepath.Join(s.dir, replica+".json") }

// put makes the record durable: written, synced, renamed, and the folder synced,
// so that after a power loss there is the old record or the new one.
func (s records) put(r record) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("record of %s: %w", r.Replica, err)
	}
	if err := writeDurably(s.path(r.Replica), append(b, '\n')); err != nil {
		return fmt.Errorf("record of %s: %w", r.Replica, err)
	}
	return nil
}

// drop removes the record; one that is not there is no error.
func (s records) drop(replica string) error {
	if err := os.Remove(s.path(replica)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record of %s: %w", replica, err)
	}
	return nil
}

// all reads every record. A file that cannot be read as one is reported by name
// and left for a person.
func (s records) all() (list []record, damaged []string, err error) {
	names, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		var r record
		b, err := os.ReadFile(name) //nolint:gosec // a file of our own folder
		if err != nil || json.Unmarshal(b, &r) != nil || r.Replica != strings.TrimSuffix(filepath.Base(name), ".json") {
			damaged = append(damaged, name)
			continue
		}
		list = append(list, r)
	}
	return list, damaged, nil
}

// writeDurably replaces the file at once and for good.
func writeDurably(path string, b []byte) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(b)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}
