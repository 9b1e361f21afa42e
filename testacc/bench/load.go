package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// loader sends the chat request over and over on a number of connections, one at a
// time on each.
type loader interface {
	// String names it for the report.
	String() string
	// send loads address (host:port) for a while. round starts the users' numbers
	// somewhere else each time. scratch is a folder for files.
	send(ctx context.Context, address string, connections int, d time.Duration, round int, scratch string) (load, error)
}

// load is what a loader saw.
type load struct {
	requests int64
	failed   int64 // connection errors, timeouts, and answers that were not 200
	elapsed  time.Duration
	p50, p99 float64       // ms
	cpu      time.Duration // of the loader itself
}

func (l load) perSecond() float64 { return float64(l.requests) / l.elapsed.Seconds() }

// newLoader takes wrk where it is installed.
func newLoader() loader {
	if path, err := exec.LookPath("wrk"); err == nil {
		return wrk{path}
	}
	return goLoad{}
}

// userDigits is how long a user's number is: always the same, so that the request
// has one length.
const userDigits = 9

// user is the placeholder for a user's number in the request. The number stands in
// the body, where the gateway takes its sticky key from, and in a header, where nginx
// takes it from.
const user = "@@@@@@@@@"

// chatBody is the body of every request, about 300 bytes.
func chatBody() string {
	return `{"model":"bench/chat","messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"` +
		strings.Repeat("tell me ", 14) + `more about canary releases."}],"max_tokens":180,"temperature":0.7,"user":"` + user + `"}`
}

// chatRequest is the whole request.
func chatRequest() string {
	body := chatBody()
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nX-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", user, len(body), body)
}
