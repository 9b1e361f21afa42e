package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/github"
)

// pollEvery is the shortest interval that a configuration may have.
const pollEvery = 5 * time.Second

// push measures from a git push to the first write that the engine has answered: woken by
// a signed webhook with the default interval, and by polling alone.
func (b *bench) push(ctx context.Context) error {
	if !hasGit() {
		fmt.Println("\ngit is not installed: the pushes are left out")
		return nil
	}
	type line struct {
		name string
		took []float64
	}
	var lines []line
	for _, kind := range []struct {
		name string
		take func(context.Context, string) (time.Duration, []float64, error)
	}{{"webhook", b.byWebhook}, {"polling", b.byPolling}} {
		every, took, err := kind.take(ctx, "push-"+kind.name)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		lines = append(lines, line{fmt.Sprintf("%s, interval %s", kind.name, every), took})
	}
	fmt.Printf("\nFrom a git push to the first write that the engine has answered: a deployment's bound, %d pushes each at random moments\n", b.size.pushes)
	t := newTable("", "p50 ms", "p90 ms", "max ms")
	for _, l := range lines {
		t.row(l.name, number("%.0f", median(l.took)), number("%.0f", quantile(l.took, 0.9)), number("%.0f", quantile(l.took, 1)))
	}
	t.print()
	return nil
}

func (b *bench) byWebhook(ctx context.Context, name string) (time.Duration, []float64, error) {
	w, stop, err := b.follow(ctx, name, 1)
	if err != nil {
		return 0, nil, err
	}
	defer stop()
	key, err := w.useHook(reconciler.GitHub, github.Hook)
	if err != nil {
		return 0, nil, err
	}
	took, err := w.pushes(ctx, b.size.pushes, time.Second, func(door string, i int) error {
		return deliver(ctx, door+"/hooks/"+w.config.Repositories[0].Name, key, fmt.Sprintf("delivery-%d", i))
	})
	return w.config.Repositories[0].Interval, took, err
}

func (b *bench) byPolling(ctx context.Context, name string) (time.Duration, []float64, error) {
	w, stop, err := b.follow(ctx, name, 1)
	if err != nil {
		return 0, nil, err
	}
	defer stop()
	w.config.Repositories[0].Interval = pollEvery
	took, err := w.pushes(ctx, b.size.pushes, pollEvery, func(string, int) error { return nil })
	return pollEvery, took, err
}

// pushes runs a reconciler and pushes so many changes, each at a random moment of a span
// after the one before was applied. after is called after each push with the door's URL.
func (w *followed) pushes(ctx context.Context, n int, span time.Duration, after func(door string, i int) error) ([]float64, error) {
	first, err := w.begin(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.settle(ctx, first), end(ctx, first)); err != nil {
		return nil, err
	}
	r, err := w.open() //nolint:contextcheck // a file is opened at once
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(running) }()
	door := httptest.NewServer(r.Handler())
	took, err := w.timePushes(ctx, n, span, func(i int) error { return after(door.URL, i) })
	door.Close()
	stop()
	return took, errors.Join(err, <-ended, r.Close()) //nolint:contextcheck // what is left of spans has a bound of its own
}

func (w *followed) timePushes(ctx context.Context, n int, span time.Duration, after func(i int) error) ([]float64, error) {
	var took []float64
	for i := range n {
		quiet := 500*time.Millisecond + time.Duration(rand.Int64N(int64(span))) //nolint:gosec // a draw, not a secret
		if err := pause(ctx, quiet); err != nil {
			return nil, err
		}
		select {
		case <-w.wrote: // a later write of the change before
		default:
		}
		if err := w.commit(ctx, 0); err != nil {
			return nil, err
		}
		pushed := time.Now()
		if err := after(i); err != nil {
			return nil, err
		}
		select {
		case at := <-w.wrote:
			took = append(took, max(0, ms(at.Sub(pushed))))
		case <-time.After(time.Minute):
			return nil, fmt.Errorf("push %d: no write in a minute", i)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return took, nil
}

// deliver sends a push's webhook, signed.
func deliver(ctx context.Context, to string, key []byte, id string) error {
	body := []byte(`{"ref": "refs/heads/main", "repository": {"full_name": "bench/infra"}}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", "push")
	req.Header.Set("X-GitHub-Delivery", id)
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the webhook was answered with %s: %s", answer.Status, text)
	}
	return nil
}
