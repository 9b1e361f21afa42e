package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// child is a process that this run started and stops by its pid.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
	log  string
}

// spawn starts a command whose output goes to a file. It is told to stop when ctx
// ends or by stop.
func spawn(ctx context.Context, log string, argv ...string) (*child, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, done: make(chan struct{}), log: log}
	go func() {
		defer close(c.done)
		_ = cmd.Wait()
		_ = out.Close()
	}()
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// stop ends the process in order, or after 20 s at once.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(20 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}

// await looks every 10 ms until found says yes, for 20 s at most, and not longer
// than the process lives.
func (c *child) await(ctx context.Context, what string, found func() bool) error {
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	limit := time.After(20 * time.Second)
	for !found() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		case <-c.done:
			return fmt.Errorf("%s ended before %s: %s", filepath.Base(c.cmd.Path), what, c.said())
		case <-limit:
			return fmt.Errorf("no %s in 20 s: %s", what, c.said())
		}
	}
	return nil
}

// said is the end of what the process printed.
func (c *child) said() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// engine is a spawned "sluice serve".
type engine struct {
	*child
	api, gateway, key string // URLs without a path; the first key
	client            *engineclient.Client
}

// startEngine serves a configuration from an empty data folder on free ports.
func (b *bench) startEngine(ctx context.Context, name, config string) (*engine, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "engine.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	c, err := spawn(ctx, filepath.Join(dir, "engine.log"), b.sluice, "serve", "--log-level", "warn",
		"--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--gateway", "127.0.0.1:0", "--config", file)
	if err != nil {
		return nil, err
	}
	e := &engine{child: c}
	if err := e.await(ctx, "the engine's addresses", e.announced); err != nil {
		c.stop()
		return nil, err
	}
	e.client, err = engineclient.New(engineclient.Config{BaseURL: e.api, APIKey: e.key})
	if err != nil {
		c.stop()
		return nil, err
	}
	return e, nil
}

// announced reads the addresses and the key off the engine's first lines.
func (e *engine) announced() bool {
	f, err := os.Open(e.log)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch name {
		case "API":
			e.api = value
		case "Gateway":
			e.gateway = strings.TrimSuffix(value, "/v1")
		case "API key":
			e.key = value
		}
	}
	return e.api != "" && e.gateway != "" && e.key != ""
}
