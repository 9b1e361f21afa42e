package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// streaming measures how long an event takes from the upstream's write to the
// client's read. Both read the same clock.
func (b *bench) streaming(ctx context.Context, targets []target) error {
	all := make([][]float64, len(targets)) // ms
	for repeat := range b.size.repeats {
		for k := range targets {
			i := (k + repeat) % len(targets)
			transits, err := b.streams(ctx, targets[i])
			if err != nil {
				return fmt.Errorf("streams of %s: %w", targets[i].name, err)
			}
			all[i] = append(all[i], transits...)
		}
	}
	fmt.Printf("\nTransit of SSE events 10 ms apart, %d streams at once\n", b.size.streams)
	t := newTable("", "events", "p50 ms", "×direct", "p99 ms", "×direct", "aim")
	for i, of := range targets {
		aim := ""
		if strings.HasPrefix(of.name, "sluice") {
			aim = "p99 at most 2 × direct"
		}
		mid, tail := quantile(all[i], 0.5), quantile(all[i], 0.99)
		t.row(of.name, fmt.Sprint(len(all[i])), number("%.3f", mid), number("%.2f", mid/quantile(all[0], 0.5)),
			number("%.3f", tail), number("%.2f", tail/quantile(all[0], 0.99)), aim)
	}
	t.print()
	return nil
}

// streams reads a few streams at once and returns the transits of their events.
func (b *bench) streams(ctx context.Context, t target) ([]float64, error) {
	type one struct {
		transits []float64
		err      error
	}
	results := make([]one, b.size.streams)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i].transits, results[i].err = stream(ctx, t.address, i) })
	}
	all.Wait()
	var out []float64
	var errs []error
	for _, r := range results {
		out = append(out, r.transits...)
		errs = append(errs, r.err)
	}
	return out, errors.Join(errs...)
}

func stream(ctx context.Context, address string, number int) ([]float64, error) {
	body := fmt.Sprintf(`{"model":"bench/chat","stream":true,"messages":[{"role":"user","content":"count"}],"user":"%09d"}`, number)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Session-Id", fmt.Sprintf("%09d", number))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	var out []float64
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		read := time.Now()
		data, isEvent := strings.CutPrefix(line, "data: ")
		switch {
		case errors.Is(err, io.EOF):
			return nil, errors.New("the stream ended without [DONE]")
		case err != nil:
			return nil, err
		case !isEvent:
			continue
		case strings.HasPrefix(data, "[DONE]"):
			return out, nil
		}
		var event struct {
			At int64 `json:"at"` // ns since 1970
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return nil, err
		}
		out = append(out, float64(read.UnixNano()-event.At)/1e6)
	}
}
