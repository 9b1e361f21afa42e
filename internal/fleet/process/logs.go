package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// logs keeps one file a replica and some rotated ones.
type logs struct {
	dir   string
	max   int64 // bytes of the current file
	files int   // rotated ones
	kept  int   // replicas that are gone whose logs stay
}

// path is the replica's current file.
func (l logs) path(replica string) string { return filepath.Join(l.dir, replica+".log") }

// open opens it for append, which copy-and-truncate needs: a writer with an
// offset of its own would leave a hole.
func (l logs) open(replica string) (*os.File, error) {
	return os.OpenFile(l.path(replica), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // our folder
}

// rotate copies a file that is too long to .1 and empties it.
func (l logs) rotate(replica string) error {
	path := l.path(replica)
	info, err := os.Stat(path)
	if err != nil || info.Size() <= l.max {
		return err
	}
	for n := l.files - 1; n >= 1; n-- {
		err := os.Rename(fmt.Sprintf("%s.%d", path, n), fmt.Sprintf("%s.%d", path, n+1))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := copyFile(path, path+".1"); err != nil {
		return err
	}
	return os.Truncate(path, 0)
}

// copyFile copies what is in the file now.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from) //nolint:gosec // our folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // our folder
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// prune removes the logs of replicas that are gone, the oldest beyond those kept.
func (l logs) prune(runs func(replica string) bool) error {
	names, err := filepath.Glob(filepath.Join(l.dir, "*.log"))
	if err != nil {
		return err
	}
	type old struct {
		path string
		at   int64
	}
	var list []old
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || runs(strings.TrimSuffix(filepath.Base(name), ".log")) {
			continue
		}
		list = append(list, old{name, info.ModTime().UnixNano()})
	}
	slices.SortFunc(list, func(a, b old) int { return int(min(1, max(-1, b.at-a.at))) })
	for _, o := range list[min(l.kept, len(list)):] {
		rotated, _ := filepath.Glob(o.path + ".*") // the pattern is a path of ours
		for _, path := range append(rotated, o.path) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}
