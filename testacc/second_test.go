package testacc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// server is one "sluice serve" on a folder that others may want too.
type server struct {
	cmd  *exec.Cmd
	said bytes.Buffer
	done chan error
}

// another starts a server on the folder of k, on free ports.
func (k *killable) another() *server {
	s := &server{done: make(chan error, 1)}
	s.cmd = exec.Command(k.binary, "serve", "--data", filepath.Join(k.dir, "data"), "--listen", "127.0.0.1:0", "--gateway", "127.0.0.1:0", "--config", filepath.Join(k.dir, "engine.yaml"))
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	require.NoError(k.t, s.cmd.Start())
	go func() { s.done <- s.cmd.Wait() }()
	return s
}

func ended(t *testing.T, done <-chan error) int {
	t.Helper()
	select {
	case err := <-done:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		require.NoError(t, err)
		return 0
	case <-time.After(20 * time.Second):
		t.Fatal("the server does not end")
		return 0
	}
}

// E1 (argo-rollouts#2117) with real processes: two engines on one folder. The second is
// refused and told who has it. After kill -9 the next start waits for nobody. One that was
// frozen, lost its lock and wakes up after another took its place writes nothing and ends.
func TestE1TwoServersOnOneFolder(t *testing.T) {
	k := newKillable(t, processEngine)
	ep, source, _ := k.deploy(t)
	second := k.another()
	require.Equal(t, 1, ended(t, second.done))
	require.Contains(t, second.said.String(), fmt.Sprintf("is in use by another sluice serve: process %d on ", k.cmd.Process.Pid))
	require.Contains(t, second.said.String(), "end that one first, or give another --data")

	began := time.Now()
	k.kill()
	require.Less(t, time.Since(began), 10*time.Second)
	first := k.cmd
	require.NoError(t, first.Process.Signal(syscall.SIGSTOP))

	// The locks are files', and somebody takes the files away.
	for _, lock := range []string{"lock", filepath.Join("fleet", "lock")} {
		require.NoError(t, os.Remove(filepath.Join(k.dir, "data", lock)))
	}
	serving := k.replicaPids()
	k.api, k.gw = "127.0.0.1:0", "127.0.0.1:0"
	frozen := k.client
	k.start() // k goes on with the one that took its place
	k.connect()
	taken := replicaIDs(t, k, ep.ID, source.ID)
	require.Len(t, taken, 2)

	require.NoError(t, first.Process.Signal(syscall.SIGCONT))
	hurry, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := frozen.CreateEndpoint(hurry, api.CreateEndpoint{Name: "late"}, "")
	require.Error(t, err, "it accepts nothing, or is gone")
	done := make(chan error, 1)
	go func() { done <- first.Wait() }()
	require.Equal(t, 1, ended(t, done))
	require.Contains(t, k.log(), fmt.Sprintf("another engine has taken the store over: process %d on ", k.cmd.Process.Pid))

	names := []string{}
	for ep, err := range k.client.Endpoints(t.Context(), engineclient.ListOptions{}) {
		require.NoError(t, err)
		names = append(names, ep.Name)
	}
	require.Equal(t, []string{ep.Name}, names)
	require.Equal(t, taken, replicaIDs(t, k, ep.ID, source.ID))
	require.Equal(t, serving, k.replicaPids(), "the replicas serve for the new one")
	for _, pid := range serving {
		require.True(t, runs(pid))
	}
}
