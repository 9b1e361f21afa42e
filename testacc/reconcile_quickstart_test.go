package testacc

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The quick start of docs/reconcile.md, pasted line by line into one shell, does what the
// page says. Only its ports are others, so that it runs beside everything else.
func TestTheReconcilersQuickStartIsFollowedLiterally(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "docs", "reconcile.md"))
	require.NoError(t, err)
	_, start, ok := strings.Cut(string(page), "\n## Quick start\n")
	require.True(t, ok)
	start, _, _ = strings.Cut(start, "\n## ")
	root, bin := t.TempDir(), t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(root, "examples"), os.DirFS(filepath.Join("..", "examples"))))
	require.NoError(t, os.Symlink(os.Getenv("SLUICE_TEST_BINARY"), filepath.Join(bin, "sluice")))
	ports := otherPorts(t, "8420", "8421", "8480", "8090")
	minimal := filepath.Join(root, "examples", "reconcile", "minimal.hcl")
	text, err := os.ReadFile(minimal)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(minimal, []byte(ports.Replace(string(text))), 0o600)) //nolint:gosec // a copy of an example

	script, promised := "set -e\n", [][]string{}
	for _, b := range block.FindAllStringSubmatch(start, -1) {
		if b[1] == "shell" {
			line := ports.Replace(b[2])
			line = strings.ReplaceAll(line, "sluice serve --data try/data ", "sluice serve --data try/data "+ports.Replace("--listen 127.0.0.1:8420 --gateway 127.0.0.1:8421 "))
			script += fmt.Sprintf("echo '=== %d'\n%s", len(promised), line)
			promised = append(promised, nil)
			continue
		}
		require.NotEmpty(t, promised)
		for line := range strings.Lines(b[2]) {
			promised[len(promised)-1] = append(promised[len(promised)-1], strings.TrimSpace(line))
		}
	}
	require.Greater(t, len(promised), 4)
	out := paste(t, root, bin, script)
	for n, lines := range promised {
		_, said, _ := strings.Cut(out, fmt.Sprintf("=== %d\n", n))
		said, _, _ = strings.Cut(said, fmt.Sprintf("=== %d\n", n+1))
		for _, line := range lines {
			require.Contains(t, said, line, "block %d\n%s", n+1, out)
		}
	}
	_, err = os.Stat(filepath.Join(root, "try"))
	require.ErrorIs(t, err, os.ErrNotExist, "it is cleaned up")
}

// otherPorts replaces ports by free ones.
func otherPorts(t *testing.T, ports ...string) *strings.Replacer {
	t.Helper()
	var pairs []string
	for _, p := range ports {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }() // all are held until all are known
		_, free, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		pairs = append(pairs, p, free)
	}
	return strings.NewReplacer(pairs...)
}

// paste runs a script as a person does in one shell; whatever it has started is ended with it.
func paste(t *testing.T, dir, bin, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	sh := exec.CommandContext(ctx, "bash", "-c", script)
	sh.Dir, sh.WaitDelay = dir, 10*time.Second
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end := func() error { return syscall.Kill(-sh.Process.Pid, syscall.SIGKILL) }
	sh.Cancel = end
	secret := regexp.MustCompile(`^(TF|SLUICE|TOGETHER)_`)
	for _, kv := range os.Environ() {
		if !secret.MatchString(kv) {
			sh.Env = append(sh.Env, kv)
		}
	}
	sh.Env = append(sh.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := sh.CombinedOutput()
	_ = end()
	require.NoError(t, err, "%s", out)
	return string(out)
}
