package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// machine says on what the figures were measured.
func machine() string {
	return fmt.Sprintf("machine: %d cores, %s/%s, %s; load average at the start %s (what else it ran falls on every row; trust the ratios)",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), loadAverage())
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// cpuOf sums the time that all threads of the processes have run, and whether this
// system tells.
func cpuOf(pids ...int) (time.Duration, bool) {
	var all time.Duration
	for _, pid := range pids {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil || len(threads) == 0 {
			return 0, false
		}
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			if err != nil {
				continue // a thread that ended just now
			}
			ran, _, _ := strings.Cut(string(text), " ")
			ns, err := strconv.ParseInt(ran, 10, 64)
			if err != nil {
				return 0, false
			}
			all += time.Duration(ns)
		}
	}
	return all, true
}

// childrenOf lists the direct children of a process.
func childrenOf(pid int) []int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var out []int
	for _, word := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(word); err == nil {
			out = append(out, child)
		}
	}
	return out
}
