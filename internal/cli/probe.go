package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/probe"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

func (a *app) probeCommand() *cobra.Command {
	var cfg probe.Config
	var length time.Duration
	var out string
	c := &cobra.Command{
		Use:   "probe --gateway URL --model SLUG/ENDPOINT",
		Short: "Send steady chat traffic and tally every answer by status and deployment",
		Long: `Send chat completions at a steady rate, each with a sticky key of its own, and count
every answer by status and by the deployment that gave it. It ends after --for or
at SIGINT or SIGTERM, prints the tally, and exits 1 when any answer was not a 200.`,
		Example: "  sluice probe --gateway http://127.0.0.1:8421/v1 --model default/chat --rps 5 --for 1m",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if length > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, length)
				defer cancel()
			}
			if out != "" {
				f, err := os.Create(out)
				if err != nil {
					return err
				}
				defer func() { _ = f.Close() }()
				cfg.Log = f
			}
			stop := context.AfterFunc(ctx, func() {
				_ = render.Line(a.Err, "ending: the answers in flight are waited for, at most 30 s", a.options(time.Time{}))
			})
			defer stop()
			tally, err := probe.Run(ctx, cfg)
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(tally)
			} else {
				a.printf("%s", tally)
			}
			if err == nil && tally.Non200() > 0 {
				err = errors.New("not every answer was a 200")
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.BaseURL, "gateway", "http://127.0.0.1:8421/v1", "base address of the OpenAI API")
	f.StringVar(&cfg.Model, "model", "", "endpoint to call, slug/name")
	f.StringVar(&cfg.APIKey, "gateway-key", "", "API key, when the gateway asks for one")
	f.Float64Var(&cfg.RPS, "rps", 5, "requests a second")
	f.BoolVar(&cfg.Stream, "stream", false, "ask for streamed answers")
	f.DurationVar(&length, "for", 0, "how long; 0 until interrupted")
	f.StringVar(&out, "log", "", "write a JSON line an answer to this file")
	_ = c.MarkFlagRequired("model") // the flag exists
	return c
}
