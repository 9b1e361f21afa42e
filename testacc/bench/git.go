package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// gitRepo is the repository that is fetched, behind the git command's own smart HTTP.
type gitRepo struct {
	dir, bare, url string
	commits        int
}

// gitTake is one thing that is timed: ours, or the git command's.
type gitTake struct {
	name string
	by   string // the take that it is compared with
	run  func(context.Context, *gitRepo, string) error
	took []float64 // ms
}

// git times our reading of a large repository beside the git command's, over HTTP from
// one server. Ours lists or reads and checks; git lists, or stores a bare clone.
func (b *bench) git(ctx context.Context) error {
	if !hasGit() {
		fmt.Println("\ngit is not installed: fetching is left out")
		return nil
	}
	r, stop, err := b.gitRepo(ctx)
	if err != nil {
		return err
	}
	defer stop()
	takes := gitTakes()
	for i := range b.size.fetches {
		dir := filepath.Join(r.dir, fmt.Sprintf("repeat-%d", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		for _, t := range takes {
			began := time.Now()
			if err := t.run(ctx, r, dir); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			t.took = append(t.took, ms(time.Since(began)))
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	fmt.Printf("\nA repository of %d commits and %d files over HTTP, beside the git command (medians of %d interleaved repeats)\n", r.commits, b.size.files, b.size.fetches)
	table := newTable("", "ms", "× git", "of git")
	for _, t := range takes {
		ratio := "–"
		for _, other := range takes {
			if other.name == t.by {
				ratio = number("%.2f", median(ratios(t.took, other.took)))
			}
		}
		if t.name != "" && !strings.HasPrefix(t.name, "(") {
			table.row(t.name, number("%.1f", median(t.took)), ratio, t.by)
		}
	}
	table.print()
	return nil
}

func hasGit() bool {
	_, err := exec.LookPath("git")
	return err == nil
}

// gitTakes are in the order in which they run; those in brackets are not shown.
func gitTakes() []*gitTake {
	const list, clone, whole, fetch = "git ls-remote", "git clone --depth 1 --bare", "git clone --mirror", "git fetch of one commit"
	return []*gitTake{
		{name: list, run: func(ctx context.Context, r *gitRepo, _ string) error { return git(ctx, nil, "ls-remote", r.url) }},
		{name: "list of refs", by: list, run: func(ctx context.Context, r *gitRepo, dir string) error {
			return r.read(ctx, dir, gitsource.Shallow, -1, "none")
		}},
		{name: clone, run: func(ctx context.Context, r *gitRepo, dir string) error {
			return git(ctx, nil, "clone", "-q", "--depth", "1", "--bare", r.url, filepath.Join(dir, "depth"))
		}},
		{name: "read, shallow, all files", by: clone, run: func(ctx context.Context, r *gitRepo, dir string) error {
			return r.read(ctx, dir, gitsource.Shallow, 0, "**")
		}},
		{name: "read, shallow, one folder of 100", by: clone, run: func(ctx context.Context, r *gitRepo, dir string) error {
			return r.read(ctx, dir, gitsource.Shallow, 100, "dir07/**")
		}},
		{name: whole, run: func(ctx context.Context, r *gitRepo, dir string) error {
			return git(ctx, nil, "clone", "-q", "--mirror", r.url, filepath.Join(dir, "mirror"))
		}},
		{name: "read, mirror, first, one folder of 100", by: whole, run: func(ctx context.Context, r *gitRepo, dir string) error {
			return r.read(ctx, dir, gitsource.Mirror, 100, "dir07/**")
		}},
		{name: "(a commit is pushed)", run: func(ctx context.Context, r *gitRepo, _ string) error { return r.push(ctx) }},
		{name: fetch, run: func(ctx context.Context, r *gitRepo, dir string) error {
			return git(ctx, nil, "--git-dir", filepath.Join(dir, "mirror"), "fetch", "-q", "--prune")
		}},
		{name: "read, mirror, one commit later", by: fetch, run: func(ctx context.Context, r *gitRepo, dir string) error {
			return r.read(ctx, dir, gitsource.Mirror, 100, "dir07/**")
		}},
		{name: "read, mirror, nothing new", by: fetch, run: func(ctx context.Context, r *gitRepo, dir string) error {
			return r.read(ctx, dir, gitsource.Mirror, 100, "dir07/**")
		}},
	}
}

// read polls and reads as the reconciler does, and checks how many files came; -1 polls
// only, 0 takes any number.
func (r *gitRepo) read(ctx context.Context, dir string, kind gitsource.StoreKind, files int, pattern string) error {
	remote, err := gitsource.Open(gitsource.Options{
		URL: r.url, Include: []string{pattern}, Store: gitsource.Store{Kind: kind, Folder: filepath.Join(dir, "ours-"+string(kind))},
		Limits: gitsource.Limits{Files: 1 << 20, TotalBytes: 1 << 30},
	})
	if err != nil {
		return err
	}
	refs, err := remote.Refs(ctx)
	if err != nil || files < 0 {
		return err
	}
	s, err := remote.Read(ctx, gitsource.Wanted{Branch: "main"}.Resolve(refs))
	if err != nil {
		return err
	}
	if len(s.Refused) > 0 || len(s.Files) == 0 || files > 0 && len(s.Files) != files {
		return fmt.Errorf("read %d files and refused %d", len(s.Files), len(s.Refused))
	}
	return nil
}

// gitRepo makes the large repository and serves it until stop.
func (b *bench) gitRepo(ctx context.Context) (r *gitRepo, stop func(), err error) {
	if r, err = initRepo(ctx, filepath.Join(b.dir, "git")); err != nil {
		return nil, nil, err
	}
	r.commits = b.size.commits
	if err := r.importing(ctx, func(w io.Writer) { history(w, b.size.files, b.size.commits) }); err != nil {
		return nil, nil, err
	}
	if err := git(ctx, nil, "--git-dir", r.bare, "repack", "-q", "-a", "-d"); err != nil {
		return nil, nil, err
	}
	stop, err = r.serve(ctx, func(h http.Handler) http.Handler { return h })
	return r, stop, err
}

// initRepo makes an empty repository in a new folder.
func initRepo(ctx context.Context, dir string) (*gitRepo, error) {
	r := &gitRepo{dir: dir, bare: filepath.Join(dir, "infra.git")}
	return r, errors.Join(os.MkdirAll(dir, 0o700), git(ctx, nil, "init", "-q", "--bare", "--initial-branch=main", r.bare))
}

// serve puts the git command's smart HTTP, with something around it, on a free port until
// stop.
func (r *gitRepo) serve(ctx context.Context, around func(http.Handler) http.Handler) (stop func(), err error) {
	listen, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, errors.Join(err, listen.Close())
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: around(&cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Dir: r.dir, Env: append(gitEnv(), "GIT_PROJECT_ROOT="+r.dir, "GIT_HTTP_EXPORT_ALL=1"),
	})}
	go func() { _ = server.Serve(listen) }()
	r.url = "http://" + listen.Addr().String() + "/infra.git"
	return func() { _ = server.Close() }, nil
}

// importing feeds git fast-import.
func (r *gitRepo) importing(ctx context.Context, feed func(io.Writer)) error {
	from, to := io.Pipe()
	go func() {
		w := bufio.NewWriter(to)
		feed(w)
		_ = to.CloseWithError(w.Flush())
	}()
	return git(ctx, from, "--git-dir", r.bare, "fast-import", "--quiet")
}

// push adds one commit that changes one file.
func (r *gitRepo) push(ctx context.Context) error {
	r.commits++
	return r.importing(ctx, func(w io.Writer) {
		commit(w, r.commits)
		_, _ = fmt.Fprintln(w, "from refs/heads/main^0")
		file(w, 700, r.commits)
	})
}

// history writes a first commit of all files, a hundred to a folder, and then one commit
// for each change of one file.
func history(w io.Writer, files, commits int) {
	for i := range commits {
		commit(w, i)
		if i > 0 {
			file(w, i%files, i)
			continue
		}
		for f := range files {
			file(w, f, 0)
		}
	}
}

func commit(w io.Writer, i int) {
	message := fmt.Sprintf("change %d", i)
	_, _ = fmt.Fprintf(w, "commit refs/heads/main\ncommitter Ada Example <ada@example.com> %d +0000\ndata %d\n%s\n", 1767225600+60*i, len(message), message)
}

// file writes about 1 KB of HCL.
func file(w io.Writer, f, version int) {
	var text strings.Builder
	for line := range 20 {
		fmt.Fprintf(&text, "value_%d = \"file %d, line %d, %x\"\n", line, f, line, uint32(f*7919+line*104729))
	}
	fmt.Fprintf(&text, "version = %d\n", version)
	_, _ = fmt.Fprintf(w, "M 100644 inline dir%02d/file%05d.hcl\ndata %d\n%s\n", f/100, f, text.Len(), text.String())
}

func git(ctx context.Context, in io.Reader, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env, cmd.Stdin = gitEnv(), in
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return nil
}

// gitEnv keeps the settings of this machine's user away.
func gitEnv() []string {
	return []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + os.DevNull, "PATH=" + os.Getenv("PATH")}
}
