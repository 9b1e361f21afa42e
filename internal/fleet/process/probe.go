package process

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// prober asks model servers whether they are ready.
type prober struct{ client *http.Client }

// newProber makes one that opens a connection a question, follows no redirect and
// uses no proxy: what counts is the answer of this process.
func newProber() prober {
	return prober{&http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ask returns why the server is not ready, nil when it is.
func (p prober) ask(ctx context.Context, port int, c rollout.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	url := "http://" + address(port) + "/" + strings.TrimPrefix(c.Path, "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("does not answer on port %d", port)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != c.Status {
		return fmt.Errorf("%s answers %d", c.Path, resp.StatusCode)
	}
	return nil
}
