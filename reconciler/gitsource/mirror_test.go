package gitsource_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource/gittest"
)

// mirrored opens a mirror in a folder that the test can look into; dir is the bare
// repository after the first read.
func mirrored(t *testing.T, repo *gittest.Repository) (r gitsource.Remote, dir func() string) {
	folder := t.TempDir()
	r = open(t, repo.URL(), gitsource.Mirror, func(o *gitsource.Options) { o.Store.Folder = folder })
	return r, func() string {
		found, err := filepath.Glob(filepath.Join(folder, "*.git"))
		require.NoError(t, err)
		require.Len(t, found, 1)
		return found[0]
	}
}

// Whatever is damaged in a mirror, it is made anew within the same call.
func TestDamagedMirrorIsMadeAnew(t *testing.T) {
	packs := func(dir, pattern string) []string {
		found, _ := filepath.Glob(filepath.Join(dir, "objects", "pack", pattern))
		return found
	}
	for name, damage := range map[string]func(t *testing.T, dir string){
		"pack cut": func(t *testing.T, dir string) {
			for _, p := range packs(dir, "*.pack") {
				require.NoError(t, os.Chmod(p, 0o600))
				require.NoError(t, os.Truncate(p, 20))
			}
		},
		"pack of other bytes": func(t *testing.T, dir string) {
			for _, p := range packs(dir, "*.pack") {
				text, err := os.ReadFile(p)
				require.NoError(t, err)
				require.NoError(t, os.Chmod(p, 0o600))
				require.NoError(t, os.WriteFile(p, append(text[:12:12], bytes.Repeat([]byte{0x55}, len(text)-12)...), 0o600))
			}
		},
		"pack gone": func(t *testing.T, dir string) {
			for _, p := range packs(dir, "*") {
				require.NoError(t, os.Remove(p))
			}
		},
		"index cut": func(t *testing.T, dir string) {
			for _, p := range packs(dir, "*.idx") {
				require.NoError(t, os.Chmod(p, 0o600))
				require.NoError(t, os.Truncate(p, 1000))
			}
		},
		"refs of other bytes": func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "packed-refs"), []byte("rubbish\n"), 0o600))
		},
		"refs gone":   func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "packed-refs"))) },
		"all gone":    func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) },
		"folder only": func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(filepath.Join(dir, "objects"))) },
	} {
		t.Run(name, func(t *testing.T) {
			_, repo := server(t)
			repo.Commit("main", map[string]string{"a.hcl": "1"})
			r, dir := mirrored(t, repo)
			read(t, r, main)
			damage(t, dir())
			require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, r, main)))
			repo.Commit("main", map[string]string{"a.hcl": "2"})
			damage(t, dir())
			require.Equal(t, map[string]string{"a.hcl": "2"}, texts(read(t, r, main)), "also when it has to fetch")
		})
	}
}

// What a process that was killed in a fetch has left goes with the next call.
func TestRestsOfAKilledFetchAreRemoved(t *testing.T) {
	_, repo := server(t)
	repo.Commit("main", map[string]string{"a.hcl": "1"})
	r, dir := mirrored(t, repo)
	read(t, r, main)
	rests := []string{filepath.Join(dir(), "objects", "pack", "tmp_pack_1"), filepath.Join(dir(), "objects", "pack", "pack-1.idx"), dir() + ".new-1", dir() + ".old-1"}
	for _, path := range rests {
		require.NoError(t, os.WriteFile(path, []byte("half"), 0o600))
	}
	read(t, r, main)
	for _, path := range rests {
		require.NoFileExists(t, path)
	}
}

func TestShallowFetchesLeaveNothing(t *testing.T) {
	s, repo := server(t)
	repo.Commit("main", map[string]string{"a.hcl": "1"})
	folder := t.TempDir()
	old := filepath.Join(folder, "left")
	r := open(t, repo.URL(), gitsource.Shallow, func(o *gitsource.Options) { o.Store.Folder = folder })
	read(t, r, main)
	heal := s.Inject(gittest.Truncated(gittest.Pack, 50))
	_, err := r.Read(bounded(t), resolve(t, r, main))
	require.Error(t, err)
	heal()
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoFileExists(t, old)
}

// Two processes with one folder: the second waits, and says for whom at its deadline.
func TestMirrorInUseByAnotherProcess(t *testing.T) {
	_, repo := server(t)
	repo.Commit("main", map[string]string{"a.hcl": "1"})
	r, dir := mirrored(t, repo)
	at := resolve(t, r, main)
	read(t, r, main)
	held := flock.New(dir() + ".lock")
	ok, err := held.TryLock()
	require.NoError(t, err)
	require.True(t, ok)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = r.Read(ctx, at)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	noneHang(t)
	require.NoError(t, held.Close())
	require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, r, main)))
}

func TestManyCallsAtOnce(t *testing.T) {
	_, repo := server(t)
	repo.Commit("main", map[string]string{"a.hcl": "1"})
	folder := t.TempDir()
	var all sync.WaitGroup
	for range 3 {
		r := open(t, repo.URL(), gitsource.Mirror, func(o *gitsource.Options) { o.Store.Folder = folder })
		for range 3 {
			all.Go(func() {
				refs, err := r.Refs(bounded(t))
				if err != nil {
					t.Error(err)
					return
				}
				s, err := r.Read(bounded(t), main.Resolve(refs))
				if err != nil || len(s.Files) != 1 {
					t.Error(err, s.Files)
				}
			})
		}
	}
	all.Wait()
}

// A mirror that has gathered packs for weeks is made anew, with one.
func TestMirrorOfManyPacksIsMadeAnew(t *testing.T) {
	_, repo := server(t)
	folder := t.TempDir()
	r := open(t, repo.URL(), gitsource.Mirror, func(o *gitsource.Options) { o.Store.Folder, o.Limits.Packs = folder, 3 })
	most := 0
	for _, text := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		repo.Commit("main", map[string]string{"a.hcl": text})
		require.Equal(t, map[string]string{"a.hcl": text}, texts(read(t, r, main)))
		packs, err := filepath.Glob(filepath.Join(folder, "*.git", "objects", "pack", "*.pack"))
		require.NoError(t, err)
		most = max(most, len(packs))
	}
	require.Equal(t, 4, most)
}

// A branch name becomes a folder of branches and back: files of refs would collide.
func TestBranchThatBecomesAFolderOfBranches(t *testing.T) {
	_, repo := server(t)
	c := repo.Commit("team", map[string]string{"a.hcl": "1"})
	r, _ := mirrored(t, repo)
	read(t, r, gitsource.Wanted{Branch: "team"})
	repo.DeleteBranch("team")
	require.NoError(t, os.RemoveAll(filepath.Join(repo.Path, "refs", "heads", "team")))
	repo.Make(gittest.Spec{Branch: "team/a", Parents: []string{c}, Files: map[string]string{"a.hcl": "2"}})
	require.Equal(t, map[string]string{"a.hcl": "2"}, texts(read(t, r, gitsource.Wanted{Branch: "team/a"})))
}
