package modelserver

import (
	"errors"
	"fmt"
	"time"
)

// The defaults of a Config's zero fields.
const (
	DefaultTokens       = 16
	DefaultDrainTimeout = 600 * time.Second
)

// Config tells how the server behaves. The zero value answers at once, never
// fails and serves any model name.
type Config struct {
	Model        string           // the one model it serves, 404 for others; empty for any
	ColdStart    time.Duration    // from New until it answers; 503 before
	Latency      Latency          // drawn for each answer
	Tokens       int              // of one answer when the request sets no lower cap; default 16
	ErrorRate    float64          // share of inference calls that answer 500, 0 to 1
	Seed         uint64           // of latencies, errors, texts and ids; same seed and same calls, same answers
	KeepAlive    time.Duration    // an idle connection is closed after it; 0 keeps it
	DrainTimeout time.Duration    // for answers in flight once Run is told to end; default 600 s
	Now          func() time.Time // default time.Now
}

// Validate names the first field that cannot be served.
func (c Config) Validate() error {
	switch {
	case !(c.ErrorRate >= 0 && c.ErrorRate <= 1):
		return fmt.Errorf("error rate %v is not a share from 0 to 1", c.ErrorRate)
	case c.Tokens < 0:
		return fmt.Errorf("%d tokens an answer: it must be 0 or more", c.Tokens)
	case c.ColdStart < 0 || c.KeepAlive < 0 || c.DrainTimeout < 0:
		return errors.New("cold start, keep-alive and drain timeout must not be negative")
	}
	return nil
}

// withDefaults fills the zero fields.
func (c Config) withDefaults() Config {
	if c.Tokens == 0 {
		c.Tokens = DefaultTokens
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrainTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
