package process

import (
	"errors"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
)

// OnClose says what becomes of the replicas when the fleet is closed.
type OnClose string

// The two endings.
const (
	EndReplicas   OnClose = ""      // drain and stop them; the default
	LeaveReplicas OnClose = "LEAVE" // they keep serving, for the next fleet on the same Dir to adopt
)

// Config describes the host.
type Config struct {
	Dir          string       // holds replicas/, logs/ and the fleet's identity; one fleet at a time
	Pools        []fleet.Pool // the inventory
	Quiesce      fleet.Quiesce
	Backoff      fleet.Backoff
	OnClose      OnClose
	LogMaxBytes  int64                        // a log is rotated above it, default 10 MiB
	LogFiles     int                          // rotated files kept of a replica, default 3
	LogsKept     int                          // logs kept of replicas that are gone, default 32
	PollInterval time.Duration                // between two looks at an adopted process, default 250 ms
	PickPort     func() (port int, err error) // a free port of 127.0.0.1; default asks the system
	Logger       *slog.Logger                 // default slog.Default()
}

// withDefaults fills the zero fields.
func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("process fleet: no folder for its records")
	}
	if c.LogMaxBytes == 0 {
		c.LogMaxBytes = 10 << 20
	}
	if c.LogFiles == 0 {
		c.LogFiles = 3
	}
	if c.LogsKept == 0 {
		c.LogsKept = 32
	}
	if c.PollInterval == 0 {
		c.PollInterval = 250 * time.Millisecond
	}
	if c.PickPort == nil {
		c.PickPort = systemPort
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Backoff = c.Backoff.WithDefaults()
	return c, nil
}

// address is where a replica on the port listens.
func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
