// Package probe sends steady inference traffic through a gateway and counts every
// answer: the witness that a rollout lost nothing.
package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config is what a probe sends.
type Config struct {
	BaseURL string    // of the OpenAI API, ending in /v1
	Model   string    // endpoint, slug/name
	APIKey  string    // empty for none
	RPS     float64   // requests a second, evenly spaced
	Stream  bool      // ask for server-sent events
	Log     io.Writer // a JSON line an answer; nil for none
}

// Answer is one request's outcome.
type Answer struct {
	At         time.Time `json:"at"`
	Status     int       `json:"status"` // 0 when there was no answer
	Deployment string    `json:"deployment,omitempty"`
	MS         float64   `json:"ms"`
	Error      string    `json:"error,omitempty"`
}

// Tally counts answers.
type Tally struct {
	Requests     int            `json:"requests"`
	ByStatus     map[int]int    `json:"byStatus"`
	ByDeployment map[string]int `json:"byDeployment"`
	FirstBad     *Answer        `json:"firstBad,omitempty"`
}

// Non200 counts answers that were not a 200, cut ones among them.
func (t Tally) Non200() int { return t.Requests - t.ByStatus[http.StatusOK] }

// String is the tally in a few lines.
func (t Tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests, %d non-200\n", t.Requests, t.Non200())
	names := make([]string, 0, len(t.ByDeployment))
	for n := range t.ByDeployment {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		fmt.Fprintf(&b, "  %-32s %6d (%.1f %%)\n", n, t.ByDeployment[n], 100*float64(t.ByDeployment[n])/float64(t.Requests))
	}
	if t.FirstBad != nil {
		fmt.Fprintf(&b, "  first bad answer: status %d %s\n", t.FirstBad.Status, t.FirstBad.Error)
	}
	return b.String()
}

// Run sends until ctx ends, waits for what is in flight (30 s at most), and
// returns the tally.
func Run(ctx context.Context, c Config) (Tally, error) {
	if c.RPS <= 0 || c.RPS > 1000 {
		return Tally{}, fmt.Errorf("%v requests a second: use more than 0 and at most 1000", c.RPS)
	}
	p := &prober{cfg: c, tally: Tally{ByStatus: map[int]int{}, ByDeployment: map[string]int{}}, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	defer p.client.CloseIdleConnections()
	// A request that was sent is answered, also when the probe is told to end.
	flight, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	every := time.NewTicker(time.Duration(float64(time.Second) / c.RPS))
	defer every.Stop()
	var wg sync.WaitGroup
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			timer := time.AfterFunc(30*time.Second, cancel)
			defer timer.Stop()
			wg.Wait()
			return p.tally, p.logErr
		case <-every.C:
			wg.Go(func() { p.count(p.send(flight, n)) })
		}
	}
}

type prober struct {
	cfg    Config
	client *http.Client

	mu     sync.Mutex
	tally  Tally
	logErr error
}

type chatRequest struct {
	Model          string        `json:"model"`
	Messages       []chatMessage `json:"messages"`
	PromptCacheKey string        `json:"prompt_cache_key"`
	Stream         bool          `json:"stream,omitempty"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (p *prober) send(ctx context.Context, n int) Answer {
	a := Answer{At: time.Now()}
	body, err := json.Marshal(chatRequest{
		Model: p.cfg.Model, Stream: p.cfg.Stream, PromptCacheKey: fmt.Sprintf("probe-%d", n),
		Messages: []chatMessage{{Role: "user", Content: fmt.Sprintf("Say something about number %d.", n)}},
	})
	if err == nil {
		err = p.exchange(ctx, body, &a)
	}
	a.MS = float64(time.Since(a.At).Microseconds()) / 1000
	if err != nil {
		a.Status, a.Error = 0, err.Error()
	}
	return a
}

func (p *prober) exchange(ctx context.Context, body []byte, a *Answer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(p.cfg.BaseURL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if p.cfg.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+p.cfg.APIKey)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	a.Status, a.Deployment = res.StatusCode, res.Header.Get("X-Sluice-Deployment")
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		a.Error = string(text[:min(len(text), 300)])
	}
	return err // an answer that was cut is none
}

func (p *prober) count(a Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally.Requests++
	p.tally.ByStatus[a.Status]++
	if a.Deployment != "" {
		p.tally.ByDeployment[a.Deployment]++
	}
	if a.Status != http.StatusOK && p.tally.FirstBad == nil {
		p.tally.FirstBad = &a
	}
	if p.cfg.Log == nil || p.logErr != nil {
		return
	}
	p.logErr = json.NewEncoder(p.cfg.Log).Encode(a)
}
