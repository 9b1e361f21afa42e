package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/process"
	"github.com/sluice-dev/terraform-provider-sluice/internal/gateway"
	"github.com/sluice-dev/terraform-provider-sluice/internal/meter"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/server"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

// Options are the command line of "sluice serve".
type Options struct {
	Dir           string // data folder; made when absent
	Listen        string // address of the API; port 0 takes a free one
	GatewayListen string // address of the gateway
	File          File
	Version       string
	Self          string // path of this binary, for commands that begin with "sluice"
	TLSCert       string // PEM files; both or neither
	TLSKey        string
	Exposure      Exposure
	KeepReplicas  ReplicasAtStop
	Logger        *slog.Logger
}

// Exposure says whether plain HTTP beyond loopback is accepted.
type Exposure int

// The two values of Exposure.
const (
	LoopbackOnly   Exposure = iota // refuse to bind anything else without TLS
	AllowPlainHTTP                 // somebody else terminates TLS
)

// ReplicasAtStop says what becomes of replicas when the server stops.
type ReplicasAtStop int

// The two values of ReplicasAtStop.
const (
	EndAtStop  ReplicasAtStop = iota // drain and stop them
	KeepAtStop                       // they keep running, and the next start adopts them
)

// Server is a running engine with its gateway.
type Server struct {
	APIURL     string
	GatewayURL string
	FirstKey   string // secret of the first key; only when this start made it
	Project    rollout.Project

	opts     Options
	log      *slog.Logger
	lock     *flock.Flock
	store    *store.SQLite
	meter    *meter.Meter
	gateway  *gateway.Gateway
	fleet    managedFleet
	engine   *engine.Engine
	api      *http.Server
	apiLn    net.Listener
	gwLn     net.Listener
	cancel   context.CancelFunc
	work     sync.WaitGroup
	failed   chan error
	fenced   atomic.Bool // another engine has taken the store over
	keeper   *slotKeeper
	stopOnce sync.Once
}

// Start brings everything up in order: the store, the replicas that still run, the
// routes, then the doors. What fails leaves nothing running.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{opts: o, log: o.Logger, failed: make(chan error, 3)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	if len(o.File.Configs) == 0 {
		s.log.Warn("the configuration declares no configs, so no model can be deployed; see docs/engine.md")
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.launch(run)
	return s, nil
}

// open makes every part and loads the state, without taking a request yet.
func (s *Server) open(ctx context.Context) error {
	if err := s.openData(ctx); err != nil {
		return err
	}
	if err := s.listen(ctx); err != nil {
		return err
	}
	s.meter = meter.New(meter.Config{Slot: time.Duration(s.opts.File.Meter.Slot), Tolerance: time.Duration(s.opts.File.Meter.Tolerance), Retention: memory})
	s.keeper = &slotKeeper{store: s.store, meter: s.meter, log: s.log}
	if err := s.keeper.load(ctx); err != nil {
		return err
	}
	s.gateway = gateway.New(gateway.Config{Meter: s.meter, MaxBody: s.opts.File.Gateway.MaxBodyBytes, MaxBuffered: s.opts.File.Gateway.MaxBufferedBytes, Logger: s.log, Authorize: s.authorize()})
	var err error
	if s.fleet, err = s.newFleet(); err != nil { //nolint:contextcheck // replicas outlive the start

		return err
	}
	bills, err := s.opts.File.Entitlement.billing()
	if err != nil {
		return err
	}
	timings := s.opts.File.timings()
	s.engine = engine.New(engine.Config{
		Store: s.store, Fleet: s.fleet, Router: s.gateway, Meter: metering{s.meter}, Billing: bills, Timings: timings,
		Serving: s.opts.File.serving(s.opts.Self), Project: s.Project, Logger: s.log,
		Poll: min(5*time.Second, max(timings.Propagation/4, 200*time.Millisecond)),
	})
	if err := s.firstKey(ctx); err != nil {
		return err
	}
	if err := s.engine.Load(ctx); err != nil {
		return err
	}
	if err := s.reconcileFleet(ctx); err != nil {
		return err
	}
	door := server.New(server.Config{
		Engine: s.engine, Logger: s.log, Version: s.opts.Version, GatewayURL: s.GatewayURL + "/v1", Metrics: s.metrics(), Shares: metering{s.meter},
	})
	s.api = &http.Server{
		Handler:           door,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	s.api.RegisterOnShutdown(door.EndStreams) // a shutdown waits for every request in flight, and a stream has no end
	return nil
}

// openData takes the data folder for this process alone and opens the store.
func (s *Server) openData(ctx context.Context) error {
	if err := os.MkdirAll(s.opts.Dir, 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	lock := flock.New(filepath.Join(s.opts.Dir, "lock"))
	held, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock the data folder: %w", err)
	}
	if !held {
		return s.inUse(ctx)
	}
	s.lock = lock
	if s.store, err = store.Open(ctx, s.opts.Dir); err != nil {
		return err
	}
	return s.loadProject(ctx)
}

// inUse names who has the data folder. The lock goes with its process, however that ends,
// so there is never a lock to be removed by hand.
func (s *Server) inUse(ctx context.Context) error {
	who, err := store.Holder(ctx, s.opts.Dir)
	if err != nil || who == "" {
		who = "it is only just starting"
	}
	return fmt.Errorf("the data folder %s is in use by another sluice serve: %s; one engine at a time works on a folder: end that one first, or give another --data", s.opts.Dir, who)
}

func (s *Server) loadProject(ctx context.Context) error {
	p, err := s.store.Project(ctx)
	if err == nil {
		s.Project = p
		return nil
	}
	if !errors.Is(err, rollout.ErrNotFound) {
		return err
	}
	if left := s.leftovers(); left != "" {
		return fmt.Errorf("the database in %s is empty, but %s is left of an earlier engine: put sluice.db back, or remove what is left to begin anew (its replicas are then ended)", s.opts.Dir, left)
	}
	f := s.opts.File.Project
	p = rollout.Project{ID: or(f.ID, "proj_default"), Name: or(f.Name, "Default"), Slug: or(f.Slug, "default"), Organization: or(f.Organization, "org_default")}
	if err := s.store.SaveProject(ctx, p); err != nil {
		return err
	}
	s.Project = p
	return nil
}

// leftovers names a record of a replica that an earlier engine left in the folder: a
// database that was lost must not look like a beginning, which would end every replica
// that serves.
func (s *Server) leftovers() string {
	records, _ := filepath.Glob(filepath.Join(s.opts.Dir, "fleet", "replicas", "*.json")) // the pattern is well formed
	if len(records) == 0 {
		return ""
	}
	return records[0]
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// firstKey makes an administrator's key on an empty data folder. It is written to
// a file before it is stored as valid, so that a crash cannot make a key that
// nobody knows.
func (s *Server) firstKey(ctx context.Context) error {
	keys, err := s.store.Keys(ctx)
	if err != nil || len(keys) > 0 {
		return err
	}
	key, secret, err := s.engine.NewKey("first key", []rollout.Scope{rollout.ScopeAdmin})
	if err != nil {
		return err
	}
	if err := keepSecret(filepath.Join(s.opts.Dir, "first-key"), secret+"\n"); err != nil {
		return fmt.Errorf("keep the first key: %w", err)
	}
	if err := s.engine.SaveKey(ctx, key); err != nil {
		return err
	}
	s.FirstKey = secret
	return nil
}

// keepSecret writes a file that its owner alone can read, whatever stood there, and
// waits until it is on disk.
func keepSecret(path, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".secret-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// listen binds both doors. Anything but loopback needs TLS or an explicit word.
func (s *Server) listen(ctx context.Context) error {
	secure := s.opts.TLSCert != "" || s.opts.TLSKey != ""
	for _, address := range []string{s.opts.Listen, s.opts.GatewayListen} {
		if !secure && s.opts.Exposure != AllowPlainHTTP && !isLoopback(address) {
			return fmt.Errorf("refusing to serve plain HTTP on %s, which is reachable from other machines; give --tls-cert and --tls-key, or --allow-plain-http when something else terminates TLS", address)
		}
	}
	var lc net.ListenConfig
	var err error
	if s.apiLn, err = lc.Listen(ctx, "tcp", s.opts.Listen); err != nil {
		return fmt.Errorf("listen for the API: %w", err)
	}
	if s.gwLn, err = lc.Listen(ctx, "tcp", s.opts.GatewayListen); err != nil {
		return fmt.Errorf("listen for the gateway: %w", err)
	}
	scheme := "http"
	if secure {
		cert, err := tls.LoadX509KeyPair(s.opts.TLSCert, s.opts.TLSKey)
		if err != nil {
			return fmt.Errorf("load the TLS certificate: %w", err)
		}
		c := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
		s.apiLn, s.gwLn, scheme = tls.NewListener(s.apiLn, c), tls.NewListener(s.gwLn, c), "https"
	}
	s.APIURL, s.GatewayURL = scheme+"://"+s.apiLn.Addr().String(), scheme+"://"+s.gwLn.Addr().String()
	return nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// authorize is who may use the gateway: anyone on loopback, holders of a key
// elsewhere, unless the configuration says otherwise.
func (s *Server) authorize() func(*http.Request) error {
	need := !isLoopback(s.opts.GatewayListen)
	if r := s.opts.File.Gateway.RequireKey; r != nil {
		need = *r
	}
	if !need {
		return nil
	}
	return func(r *http.Request) error {
		key, ok, err := s.engine.Authenticate(r.Context(), bearer(r))
		if err != nil {
			return err
		}
		if !ok || !key.Allows(rollout.ScopeRead) {
			return errors.New("the API key is not valid; send it as \"Authorization: Bearer KEY\"")
		}
		return nil
	}
}

// launch starts the work that runs until Stop.
func (s *Server) launch(ctx context.Context) {
	s.work.Go(func() { s.report(s.engine.Run(ctx)) })
	s.work.Go(func() { s.keeper.run(ctx) })
	s.work.Go(func() { s.report(s.gateway.Serve(s.gwLn)) })
	s.work.Go(func() {
		if err := s.api.Serve(s.apiLn); !errors.Is(err, http.ErrServerClosed) {
			s.report(err)
		}
	})
}

func (s *Server) report(err error) {
	if errors.Is(err, rollout.ErrFenced) {
		s.fenced.Store(true)
	}
	if err != nil {
		s.failed <- err
	}
}

// Failed gets an error when a part ended by itself; the caller then stops.
func (s *Server) Failed() <-chan error { return s.failed }

// Stop ends everything in order: no new API call, the requests in flight answered,
// the runner halted between two moves, measurements saved, replicas ended or left.
// A rollout under way is taken up by the next start. When ctx ends first, what is
// left is cut off.
func (s *Server) Stop(ctx context.Context) error {
	var err error
	s.stopOnce.Do(func() { err = s.close(ctx) })
	return err
}

func (s *Server) close(ctx context.Context) error {
	var errs []error
	if s.api != nil && s.cancel != nil {
		if err := s.api.Shutdown(ctx); err != nil {
			errs = append(errs, err, s.api.Close()) // the grace is over: cut off what is left
		}
	}
	if s.gateway != nil && s.cancel != nil {
		errs = append(errs, s.gateway.Shutdown(ctx))
	}
	if s.cancel != nil {
		s.cancel()
		s.work.Wait()
		errs = append(errs, s.keeper.seal(context.WithoutCancel(ctx)))
	} else {
		for _, l := range []net.Listener{s.apiLn, s.gwLn} {
			if l != nil {
				errs = append(errs, l.Close())
			}
		}
	}
	if p, ok := s.fleet.(*process.Fleet); ok && s.fenced.Load() {
		p.Leave() // they serve for the engine that took this one's place
	}
	if s.fleet != nil {
		errs = append(errs, s.fleet.Close(ctx))
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Unlock())
	}
	return errors.Join(errs...)
}
