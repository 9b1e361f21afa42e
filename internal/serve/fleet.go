package serve

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/process"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/simulated"
	"github.com/sluice-dev/terraform-provider-sluice/internal/modelserver"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// managedFleet is the engine's port with an end.
type managedFleet interface {
	engine.Fleet
	Close(ctx context.Context) error
}

func (s *Server) newFleet() (managedFleet, error) {
	if s.opts.File.Fleet.Driver == driverSimulated {
		return s.newSimulated()
	}
	onClose := process.EndReplicas
	if s.opts.KeepReplicas == KeepAtStop {
		onClose = process.LeaveReplicas
	}
	return process.New(process.Config{
		Dir: filepath.Join(s.opts.Dir, "fleet"), Pools: s.opts.File.pools(), Quiesce: s.quiesce, OnClose: onClose, Logger: s.log,
	})
}

// quiesce is the gateway's part of a drain.
func (s *Server) quiesce(ctx context.Context, r rollout.Replica) error {
	return s.gateway.Drain(ctx, r.ID)
}

// reconcileFleet ends what runs but is not wanted, now that every deployment has
// been ensured.
func (s *Server) reconcileFleet(ctx context.Context) error {
	p, ok := s.fleet.(*process.Fleet)
	if !ok {
		return nil
	}
	all, err := s.store.Deployments(ctx, "")
	if err != nil {
		return err
	}
	wanted := make([]string, 0, len(all))
	for _, d := range all {
		wanted = append(wanted, d.ID)
	}
	return p.Reconcile(ctx, wanted)
}

// simulatedFleet is the simulated driver with a model server in this process
// behind every replica.
type simulatedFleet struct {
	*simulated.Fleet
	configs map[string]ConfigFile
	start   func(modelserver.Config) (addr string, stop func(), err error)

	mu      sync.Mutex
	serving map[string]string // config id by deployment
}

func (s *Server) newSimulated() (managedFleet, error) {
	if left := s.leftovers(); left != "" {
		return nil, fmt.Errorf("the folder has replicas of the process driver (%s); start once with that driver and stop its deployments before you change it", left)
	}
	f := &simulatedFleet{configs: map[string]ConfigFile{}, serving: map[string]string{}, start: modelserver.Start}
	if s.opts.File.Fleet.Servers == serversConfig {
		f.start = (&sharedServers{running: map[string]*sharedServer{}}).start
	}
	for _, c := range s.opts.File.Configs {
		f.configs[c.ID] = c
	}
	inner, err := simulated.New(simulated.Config{Pools: s.opts.File.pools(), Quiesce: s.quiesce, Backend: f.backend})
	if err != nil {
		return nil, err
	}
	f.Fleet = inner
	inner.Start()
	return f, nil
}

// Ensure notes the config of a deployment, for the servers of its replicas.
func (f *simulatedFleet) Ensure(ctx context.Context, w rollout.Workload) error {
	f.mu.Lock()
	f.serving[w.Deployment] = w.Config.ID
	f.mu.Unlock()
	return f.Fleet.Ensure(ctx, w)
}

func (f *simulatedFleet) backend(r rollout.Replica, model string) (string, func(), error) {
	f.mu.Lock()
	config := f.configs[f.serving[r.Deployment]]
	f.mu.Unlock()
	c, err := config.modelServer(model)
	if err != nil {
		return "", nil, err
	}
	return f.start(c)
}

// bearer returns the secret of an Authorization header, empty for none.
func bearer(r *http.Request) string {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}
