package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// wrk is the load generator of that name.
type wrk struct{ path string }

func (w wrk) String() string { return "wrk" }

// script gives every request another user, and prints the outcome as one line.
const script = `
local threads = 0
function setup(thread)
  threads = threads + 1
  thread:set("number", threads * 100000000 + %d * 10000000)
end
function init(args)
  local request = %q
  parts = {}
  for part in (request .. "%[3]s"):gmatch("(.-)%[3]s") do parts[#parts + 1] = part end
end
function request()
  number = number + 1
  local user = string.format("%%d", number)
  return parts[1] .. user .. parts[2] .. user .. parts[3]
end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("BENCH %%d %%d %%d %%.3f %%.3f\n", summary.requests, e.connect + e.read + e.write + e.timeout + e.status,
    summary.duration, latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
`

func (w wrk) send(ctx context.Context, address string, connections int, d time.Duration, round int, scratch string) (load, error) {
	file := filepath.Join(scratch, "load.lua")
	if err := os.WriteFile(file, fmt.Appendf(nil, script, round%10, chatRequest(), user), 0o600); err != nil {
		return load{}, err
	}
	threads := min(2, runtime.NumCPU(), connections)
	// wrk takes whole seconds only; it is told to stop when the time is over, and
	// prints its summary then.
	cmd := exec.CommandContext(ctx, w.path, "-t", strconv.Itoa(threads), "-c", strconv.Itoa(connections),
		"-d", strconv.Itoa(int(d/time.Second)+1)+"s", "-s", file, "http://"+address)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return load{}, err
	}
	enough := time.AfterFunc(d, func() { _ = cmd.Process.Signal(os.Interrupt) })
	defer enough.Stop()
	if err := cmd.Wait(); err != nil {
		return load{}, fmt.Errorf("wrk: %w: %s", err, out.String())
	}
	_, line, found := strings.Cut(out.String(), "BENCH ")
	if !found {
		return load{}, fmt.Errorf("wrk printed no summary: %s", out.String())
	}
	var l load
	var us int64
	if _, err := fmt.Sscan(line, &l.requests, &l.failed, &us, &l.p50, &l.p99); err != nil {
		return load{}, fmt.Errorf("wrk's summary %q: %w", line, err)
	}
	l.elapsed = time.Duration(us) * time.Microsecond
	l.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return l, nil
}
