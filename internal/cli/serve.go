package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/modelserver"
	"github.com/sluice-dev/terraform-provider-sluice/internal/serve"
)

func (a *app) serveCommand() *cobra.Command {
	o := serve.Options{Version: a.Version, Self: a.Self}
	var file, level string
	var plain, keep bool
	var grace time.Duration
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the engine with its gateway",
		Long: `Run the engine: API v2, the runner, the fleet and the gateway, with all state in one
data folder. On an empty folder it makes one administrator's key, prints it and
keeps it in DIR/first-key. SIGINT or SIGTERM stops it in order; a rollout under way
is taken up by the next start.`,
		Example: "  sluice serve --data ./data --config engine.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := serve.ReadFile(file)
			if err != nil {
				return err
			}
			o.File = f
			var l slog.Level
			if err := l.UnmarshalText([]byte(level)); err != nil {
				return usagef("--log-level %q: use debug, info, warn or error", level)
			}
			o.Logger = slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: l}))
			if plain {
				o.Exposure = serve.AllowPlainHTTP
			}
			if keep {
				o.KeepReplicas = serve.KeepAtStop
			}
			return a.serve(c.Context(), o, grace)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Dir, "data", "", "data folder, made when absent")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8420", "address of the API; port 0 takes a free one")
	f.StringVar(&o.GatewayListen, "gateway", "127.0.0.1:8421", "address of the gateway")
	f.StringVar(&file, "config", "", "engine configuration, YAML: hardware, serving configs, timings")
	f.StringVar(&o.TLSCert, "tls-cert", "", "PEM file of the certificate, for both doors")
	f.StringVar(&o.TLSKey, "tls-key", "", "PEM file of its key")
	f.BoolVar(&plain, "allow-plain-http", false, "serve plain HTTP beyond loopback; something else terminates TLS")
	f.BoolVar(&keep, "keep-replicas", false, "leave replicas running at the stop, for the next start to adopt")
	f.DurationVar(&grace, "grace", time.Minute, "time for requests in flight at the stop")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	_ = c.MarkFlagRequired("data") // the flag exists
	return c
}

func (a *app) serve(ctx context.Context, o serve.Options, grace time.Duration) error {
	s, err := serve.Start(ctx, o)
	if err != nil {
		return err
	}
	a.printf("sluice %s\nAPI:     %s\nGateway: %s/v1\nProject: %s (%s)\n", a.Version, s.APIURL, s.GatewayURL, s.Project.ID, s.Project.Slug)
	if s.FirstKey != "" {
		a.printf("API key: %s\n", s.FirstKey)
	}
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-s.Failed():
	}
	_, _ = fmt.Fprintln(a.Err, "stopping: no new calls, requests in flight finish; a second signal ends at once")
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := s.Stop(stop); err != nil && failed == nil {
		return fmt.Errorf("stop: %w", err)
	}
	return failed
}

func (a *app) modelserverCommand() *cobra.Command {
	var cfg modelserver.Config
	var latency, listen string
	c := &cobra.Command{
		Use:   "modelserver",
		Short: "Serve a make-believe model over the OpenAI HTTP API, for demos and tests",
		Long: `Serve a make-believe model over the OpenAI HTTP API: chat and plain completions with
streaming, embeddings, models, health. It has a cold start, a latency distribution,
a number of tokens an answer and an error rate, so that it stands in for a real
model server where the question is how traffic moves.`,
		Example: `  sluice modelserver --listen 127.0.0.1:9000 --model demo/qwen --latency "lognormal(300ms,0.3)"`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if latency != "" {
				l, err := modelserver.ParseLatency(latency)
				if err != nil {
					return &usageError{err}
				}
				cfg.Latency = l
			}
			if err := cfg.Validate(); err != nil {
				return &usageError{err}
			}
			if listen == "" {
				port := strings.TrimSpace(a.Getenv("PORT"))
				if port == "" {
					port = "0"
				}
				listen = net.JoinHostPort("127.0.0.1", port)
			}
			l, err := (&net.ListenConfig{}).Listen(c.Context(), "tcp", listen)
			if err != nil {
				return err
			}
			a.printf("serving %s on http://%s/v1\n", cfg.Model, l.Addr())
			return modelserver.New(cfg).Run(c.Context(), l)
		},
	}
	f := c.Flags()
	f.StringVar(&listen, "listen", "", "address (default 127.0.0.1 and $PORT, or a free port)")
	f.StringVar(&cfg.Model, "model", "", "the one model it serves; empty for any")
	f.DurationVar(&cfg.ColdStart, "cold-start", 0, "time from start until it answers")
	f.StringVar(&latency, "latency", "", `of an answer: 120ms, normal(120ms,20ms), lognormal(120ms,0.3) or uniform(50ms,200ms)`)
	f.IntVar(&cfg.Tokens, "tokens", modelserver.DefaultTokens, "tokens of an answer")
	f.Float64Var(&cfg.ErrorRate, "error-rate", 0, "share of calls that answer 500, 0 to 1")
	f.Uint64Var(&cfg.Seed, "seed", 0, "of latencies, errors and texts")
	f.DurationVar(&cfg.KeepAlive, "keep-alive", 0, "close an idle connection after this; 0 keeps it")
	return c
}
