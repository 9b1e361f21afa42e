package engineclient

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// CanStream is the capability of an engine that streams its events.
const CanStream = "event-stream"

// silence is how long a stream may say nothing before it counts as stalled. Engines
// give a sign of life every 10 s.
const silence = 35 * time.Second

// longestLine bounds what is kept of a stream: one event.
const longestLine = 1 << 20

// streams opens event streams: one attempt each, without the time limit of a call.
type streams struct {
	wire     wire
	patience time.Duration // until the head of the answer
}

// listener hears one attempt at a stream.
type listener interface {
	opened()
	event(e api.Event)
}

// read follows a feed from after last until the stream ends, stalls, or ctx ends. It
// returns the id of the last event heard, and why the stream is over; a refusal is an
// *api.Error.
func (s streams) read(ctx context.Context, req Request, last string, l listener) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(s.patience, func() { cancel(errStalled) })
	defer watchdog.Stop()
	header := http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-cache"}}
	if last != "" {
		header.Set("Last-Event-Id", last)
	}
	answer, err := s.wire.send(ctx, req, header)
	if err != nil {
		return last, causeOf(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<16)) // for the message alone
		return last, refusal(req, Response{Status: answer.StatusCode, Header: answer.Header, Body: body})
	}
	l.opened()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, longestLine)
	var id, data string
	for watchdog.Reset(silence); lines.Scan(); watchdog.Reset(silence) {
		field, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimPrefix(value, " "); {
		case field == "id":
			id = value
		case field == "data":
			data = value
		case lines.Text() == "" && data != "":
			var e api.Event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				return last, fmt.Errorf("an event of %s is not readable: %w", req.Path, err)
			}
			last, data = id, ""
			l.event(e)
		}
	}
	if err := lines.Err(); err != nil {
		return last, causeOf(ctx, err)
	}
	return last, io.ErrUnexpectedEOF
}

var errStalled = fmt.Errorf("the event stream gave no sign of life for %s", silence)

// causeOf prefers the reason for which a context was ended to what the network made
// of it.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
