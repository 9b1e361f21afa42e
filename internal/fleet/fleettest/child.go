package fleettest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/modelserver"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// The environment that makes a test binary a model server.
const (
	envServe    = "FLEETTEST_SERVE"
	envCold     = "FLEETTEST_COLD"     // a duration
	envStubborn = "FLEETTEST_STUBBORN" // ignores SIGTERM when set
	envSay      = "FLEETTEST_SAY"      // is written to stdout every millisecond
)

// Serving is a config whose command is the running test binary as a model server.
// The binary's TestMain must call ServeIfAsked first.
func Serving(cold time.Duration) rollout.ServingConfig {
	return rollout.ServingConfig{
		ID: "cr_test", Models: []string{"*"}, Hardware: Hardware,
		Command: []string{os.Args[0], "-replica", "{replica}", "-port", "{port}"},
		// A race-enabled binary sleeps a second at its exit unless told otherwise.
		Env:         map[string]string{envServe: "1", envCold: cold.String(), "GORACE": "atexit_sleep_ms=0"},
		Probe:       rollout.Probe{Interval: 20 * time.Millisecond},
		StopTimeout: 20 * time.Second,
	}
}

// Stubborn makes the server ignore SIGTERM.
func Stubborn(c rollout.ServingConfig) rollout.ServingConfig { return with(c, envStubborn, "1") }

// Saying makes the server write the line to stdout every millisecond.
func Saying(c rollout.ServingConfig, line string) rollout.ServingConfig { return with(c, envSay, line) }

// with adds to the environment of a copy.
func with(c rollout.ServingConfig, key, value string) rollout.ServingConfig {
	env := map[string]string{key: value}
	for k, v := range c.Env {
		env[k] = v
	}
	c.Env = env
	return c
}

// ServeIfAsked turns a test binary that a Serving config started into the model
// server, and ends it. In every other binary it does nothing.
func ServeIfAsked() {
	if os.Getenv(envServe) == "" {
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// say repeats the line until the process ends.
func say(line string) {
	for range time.Tick(time.Millisecond) {
		fmt.Println(line)
	}
}

// serve runs the model server on $PORT until SIGTERM.
func serve() error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if os.Getenv(envStubborn) != "" {
		ctx = context.WithoutCancel(ctx)
	}
	if line := os.Getenv(envSay); line != "" {
		go say(line)
	}
	cold, err := time.ParseDuration(os.Getenv(envCold))
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", os.Getenv("PORT")))
	if err != nil {
		return err
	}
	return modelserver.New(modelserver.Config{Model: os.Getenv("SLUICE_MODEL"), ColdStart: cold}).Run(ctx, l)
}
