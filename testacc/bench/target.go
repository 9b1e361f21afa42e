package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// target is something that answers the chat request.
type target struct {
	name    string
	address string       // host:port
	pids    func() []int // whose CPU time is the target's; nil for the upstream itself
	splits  bool         // sends a tenth to the candidate
}

// upstreams are the two mocks behind everything.
type upstreams struct{ stable, candidate string } // addresses

// counts returns how many requests each mock has answered.
func (u upstreams) counts(ctx context.Context) (stable, candidate int64, err error) {
	for address, to := range map[string]*int64{u.stable: &stable, u.candidate: &candidate} {
		text, err := get(ctx, "http://"+address+"/count")
		if err != nil {
			return 0, 0, err
		}
		if *to, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, 0, err
		}
	}
	return stable, candidate, nil
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// gatewayConfig runs the mocks as replicas, which is how real model servers run.
const gatewayConfig = `
project: {id: proj_bench, slug: bench}
hardware:
  - {id: 1xbench, gpu_type: none, capacity: 2}
configs:
  - {id: cr_stable, models: [bench/stable], hardware: 1xbench, command: [%[1]q, -port, "{port}", -note, %[2]q], probe: {path: /health, interval: 50ms}, cold_start: 20s, drain_timeout: 1s, stop_timeout: 2s}
  - {id: cr_candidate, models: [bench/candidate], hardware: 1xbench, command: [%[1]q, -port, "{port}", -note, %[3]q], probe: {path: /health, interval: 50ms}, cold_start: 20s, drain_timeout: 1s, stop_timeout: 2s}
timings: {propagation: 100ms}
`

// startGateway serves the real engine with a canary that stands at 10 % for longer
// than the benchmarks take. The mocks are its replicas.
func (b *bench) startGateway(ctx context.Context) (*engine, upstreams, error) {
	notes := [2]string{filepath.Join(b.dir, "stable.address"), filepath.Join(b.dir, "candidate.address")}
	e, err := b.startEngine(ctx, "gateway", fmt.Sprintf(gatewayConfig, filepath.Join(b.dir, "bin", "mock"), notes[0], notes[1]))
	if err != nil {
		return nil, upstreams{}, err
	}
	hour := api.Duration(time.Hour)
	r, err := e.begin(ctx, "chat", api.Canary{Steps: []api.CanaryStep{{Traffic: 10}, {Traffic: 100}}, StepInterval: &hour})
	if err == nil {
		err = e.await(ctx, "canary at 10 %", func() bool {
			now, err := e.client.GetRollout(ctx, r.EndpointID, r.ID)
			return err == nil && now.CurrentTrafficPercent != nil && *now.CurrentTrafficPercent == 10 && now.Sluice != nil && now.Sluice.Phase == "SOAKING"
		})
	}
	var u upstreams
	for i, to := range []*string{&u.stable, &u.candidate} {
		if err == nil {
			var text []byte
			text, err = os.ReadFile(notes[i])
			*to = string(text)
		}
	}
	if err != nil {
		e.stop()
		return nil, u, err
	}
	return e, u, nil
}

// begin makes an endpoint with a deployment that serves and a stopped one, and starts
// a canary between them.
func (e *engine) begin(ctx context.Context, name string, c api.Canary) (api.Rollout, error) {
	p, err := e.makePair(ctx, name)
	if err != nil {
		return api.Rollout{}, err
	}
	return e.canary(ctx, p, c)
}

// pair is an endpoint with its two deployments.
type pair struct{ endpoint, name, source, target string }

func (e *engine) makePair(ctx context.Context, name string) (pair, error) {
	ep, err := e.client.CreateEndpoint(ctx, api.CreateEndpoint{Name: name}, "")
	if err != nil {
		return pair{}, err
	}
	none, one := 0, 1
	source, err := e.client.CreateDeployment(ctx, ep.ID, api.CreateDeployment{Name: "stable", Model: "bench/stable", Config: "cr_stable", Autoscaling: api.Autoscaling{MinReplicas: &one, MaxReplicas: &one}}, "")
	if err != nil {
		return pair{}, err
	}
	target, err := e.client.CreateDeployment(ctx, ep.ID, api.CreateDeployment{Name: "candidate", Model: "bench/candidate", Config: "cr_candidate", Autoscaling: api.Autoscaling{MinReplicas: &none, MaxReplicas: &none}}, "")
	if err != nil {
		return pair{}, err
	}
	if _, err := e.client.SetWeight(ctx, ep.ID, source.ID, 1); err != nil {
		return pair{}, err
	}
	err = e.await(ctx, "ready source", func() bool {
		d, err := e.client.GetDeployment(ctx, ep.ID, source.ID)
		return err == nil && d.Status.State == api.DeploymentReady
	})
	return pair{ep.ID, ep.Name, source.ID, target.ID}, err
}

func (e *engine) canary(ctx context.Context, p pair, c api.Canary) (api.Rollout, error) {
	r, err := e.client.CreateRollout(ctx, p.endpoint, api.RolloutSpec{SourceDeploymentID: p.source, TargetDeploymentID: p.target, Canary: &c}, "")
	if err != nil {
		return r, err
	}
	return e.client.StartRollout(ctx, p.endpoint, r.ID)
}

// nginxConfig splits by the header that carries the same number as the body.
const nginxConfig = `
daemon off;
worker_processes %[1]d;
pid %[2]s/nginx.pid;
error_log stderr crit;
%[3]s
events { worker_connections 2048; }
http {
  access_log off;
  client_body_temp_path %[2]s/body;
  proxy_temp_path %[2]s/proxy;
  fastcgi_temp_path %[2]s/fastcgi;
  uwsgi_temp_path %[2]s/uwsgi;
  scgi_temp_path %[2]s/scgi;
  keepalive_requests 100000000;
  split_clients "$http_x_session_id" $side { 10%% candidate; * stable; }
  upstream stable { server %[4]s; keepalive 128; keepalive_requests 100000000; }
  upstream candidate { server %[5]s; keepalive 128; keepalive_requests 100000000; }
  server {
    listen %[6]s;
    location / {
      proxy_pass http://$side;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }
}
`

// startNginx serves the same split over the same mocks.
func (b *bench) startNginx(ctx context.Context, u upstreams) (*child, target, error) {
	path, err := exec.LookPath("nginx")
	if err != nil {
		return nil, target{}, err
	}
	dir := filepath.Join(b.dir, "nginx")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, target{}, err
	}
	address, err := freeAddress(ctx) // nginx cannot choose a port itself
	if err != nil {
		return nil, target{}, err
	}
	asRoot := ""
	if os.Geteuid() == 0 {
		asRoot = "user root;" // else its workers may not enter the scratch folder
	}
	config := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(nginxConfig, runtime.NumCPU(), dir, asRoot, u.stable, u.candidate, address)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, target{}, err
	}
	c, err := spawn(ctx, filepath.Join(dir, "nginx.log"), path, "-p", dir, "-c", config)
	if err != nil {
		return nil, target{}, err
	}
	err = c.await(ctx, "answer of nginx", func() bool {
		text, err := get(ctx, "http://"+address+"/health")
		return err == nil && text == "ok"
	})
	if err != nil {
		c.stop()
		return nil, target{}, err
	}
	// Its workers have started by now, and a benchmark in between starts none.
	pids := append([]int{c.pid()}, childrenOf(c.pid())...)
	return c, target{name: "nginx split_clients", address: address, pids: func() []int { return pids }, splits: true}, nil
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

func hostPort(url string) string { return strings.TrimPrefix(url, "http://") }
