// Package testacc holds the acceptance tests: the real engine over real HTTP, the
// real terraform, the official clients, real processes.
package testacc

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/serve"
)

// fastEngine is an engine whose replicas are model servers inside this process and
// whose waits are as short as they can be while every phase is still gone through.
const fastEngine = `
project: {id: proj_test, slug: acme}
fleet: {driver: simulated}
hardware:
  - {id: 1xtest, gpu_type: none, price_cents_per_hour: 249, capacity: 8}
configs:
  - {id: cr_stable, models: [demo/stable], hardware: 1xtest, simulated: {cold_start: 50ms, latency: 5ms}}
  - {id: cr_slow, models: [demo/candidate], hardware: 1xtest, simulated: {cold_start: 50ms, latency: 300ms}}
  - {id: cr_good, models: [demo/candidate], hardware: 1xtest, simulated: {cold_start: 50ms, latency: 5ms}}
  - {id: cr_never, models: [demo/never], hardware: 1xtest, simulated: {cold_start: 1h}}
timings:
  propagation: 50ms
  ingestion_lag: 200ms
  default_window: 1s
  minimum_window: 500ms
  default_interval: 100ms
  stabilization: 50ms
  confirmation: 300ms
  peek_every: 100ms
  gate_settle: 100ms
meter: {slot: 50ms}
`

// testEngine is a served engine with a client that may do everything.
type testEngine struct {
	*serve.Server
	Client *engineclient.Client
	Key    string
	Dir    string
}

// startEngine serves an engine in this process on free ports until the test ends.
func startEngine(t *testing.T, config string) *testEngine {
	t.Helper()
	return startEngineIn(t, t.TempDir(), config)
}

func startEngineIn(t *testing.T, dir, config string) *testEngine {
	t.Helper()
	path := filepath.Join(dir, "engine.yaml")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	file, err := serve.ReadFile(path)
	require.NoError(t, err)
	data := filepath.Join(dir, "data")
	s, err := serve.Start(t.Context(), serve.Options{Dir: data, Listen: "127.0.0.1:0", GatewayListen: "127.0.0.1:0", File: file, Version: "test", Self: os.Getenv("SLUICE_TEST_BINARY")})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(t, s.Stop(ctx))
	})
	key, err := os.ReadFile(filepath.Join(data, "first-key"))
	require.NoError(t, err)
	e := &testEngine{Server: s, Key: string(key[:len(key)-1]), Dir: dir}
	e.Client, err = engineclient.New(engineclient.Config{BaseURL: s.APIURL, APIKey: e.Key})
	require.NoError(t, err)
	return e
}
