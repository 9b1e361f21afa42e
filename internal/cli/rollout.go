package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// rolloutFlags are the words of "sluice rollout", as in the platform's CLI.
type rolloutFlags struct {
	source                         string
	canary, blueGreen, rolling     bool
	steps                          []string
	interval                       string
	metric, stat, operator         string
	direction, window              string
	threshold, maxRegression       float64
	finalSource, finalTarget       int
	holdSource                     bool
	pause, resume, promote, cancel bool
	reason                         string
	wait, preview                  bool
}

func (a *app) rolloutCommand() *cobra.Command {
	var f rolloutFlags
	c := &cobra.Command{
		Use:   "rollout TARGET | rollout ENDPOINT --pause|--resume|--promote|--cancel",
		Short: "Create and start a rollout, or control one",
		Long: `Create and start a rollout to a target deployment, or, with exactly one control flag,
pause, resume, promote or cancel the one of an endpoint. The source is inferred when
exactly one other deployment has traffic. A gate flag makes one metric rule; for
several use Terraform or the API. Durations are 600s, 10m, or 600 for seconds.`,
		Example: `  sluice rollout dep_new --canary --steps 10,50,100 --metric router_latency --metric-stat p95 --metric-max-regression 25
  sluice rollout chat --cancel --reason "p95 regression on the candidate"
  sluice rollout dep_old --source dep_new --blue-green --wait`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			controls, strategies := count(f.pause, f.resume, f.promote, f.cancel), count(f.canary, f.blueGreen, f.rolling)
			switch {
			case controls > 1:
				return usagef("--pause, --resume, --promote and --cancel exclude each other")
			case controls == 1 && strategies > 0:
				return usagef("a control goes without a strategy")
			case controls == 1:
				return a.control(cmd.Context(), cl, args[0], f)
			case strategies != 1:
				return usagef("give exactly one of --canary, --blue-green and --rolling, or one control")
			}
			return a.createRollout(cmd, cl, args[0], f)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.source, "source", "", "source deployment, when it cannot be inferred")
	fl.BoolVar(&f.canary, "canary", false, "staged percents with gates")
	fl.BoolVar(&f.blueGreen, "blue-green", false, "one cut-over")
	fl.BoolVar(&f.rolling, "rolling", false, "replica by replica")
	fl.StringSliceVar(&f.steps, "steps", nil, "canary percents, for example 10,50,100 (default 5,25,50,100)")
	fl.StringVar(&f.interval, "interval", "", "wait of each canary step: 600s, 10m, or 600 for seconds")
	fl.StringVar(&f.metric, "metric", "", "router_latency, router_error_rate or inflight_requests")
	fl.StringVar(&f.stat, "metric-stat", "", "avg, p50, p90, p95 or p99")
	fl.StringVar(&f.operator, "metric-operator", "", "lt, lte, gt or gte: what the target must satisfy; goes with --metric-threshold")
	fl.Float64Var(&f.threshold, "metric-threshold", 0, "value of the operator")
	fl.StringVar(&f.direction, "metric-direction", "higher-is-worse", "higher-is-worse or lower-is-worse")
	fl.Float64Var(&f.maxRegression, "metric-max-regression", 0, "percent that the target may be worse")
	fl.StringVar(&f.window, "metric-window", "", "how far back the gate looks: 300s, 5m, or 300 for seconds (default the engine's)")
	fl.IntVar(&f.finalSource, "final-source-replicas", 0, "replicas left on the source")
	fl.BoolVar(&f.holdSource, "hold-source", false, "keep the source at its full size until the last gate has passed (Sluice's own engine)")
	fl.IntVar(&f.finalTarget, "final-target-replicas", 0, "replicas of the target at the end (default the source's)")
	fl.BoolVar(&f.pause, "pause", false, "hold where it is")
	fl.BoolVar(&f.resume, "resume", false, "go on; a tripped gate is evaluated again")
	fl.BoolVar(&f.promote, "promote", false, "jump to the last step")
	fl.BoolVar(&f.cancel, "cancel", false, "freeze the split that is being served")
	fl.StringVar(&f.reason, "reason", "", "why, for the event feed; needed to cancel")
	fl.BoolVar(&f.wait, "wait", false, "follow it until it is over (exit 0), parked (3) or canceled (4)")
	fl.BoolVar(&f.preview, "preview", false, "only show what it would do")
	return c
}

func count(flags ...bool) int {
	n := 0
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

func (a *app) control(ctx context.Context, c *engineclient.Client, ref string, f rolloutFlags) error {
	if f.cancel && strings.TrimSpace(f.reason) == "" {
		return usagef("--cancel needs --reason: it stands in the event feed for those who ask later")
	}
	r, err := findRollout(ctx, c, ref)
	if err != nil {
		return err
	}
	body := api.Control{Reason: f.reason, ETag: r.ETag}
	done, call := "resumed", controlCall(c.ResumeRollout)
	switch {
	case f.pause:
		done, call = "pause accepted", c.PauseRollout
	case f.promote:
		done, call = "promoted to the last step", c.PromoteRollout
	case f.cancel:
		done, call = "cancel accepted; the split is being frozen", c.CancelRollout
	}
	if !f.pause && !f.cancel {
		body.Reason = ""
	}
	if r, err = repeated(ctx, c, r, body, call); err != nil {
		return err
	}
	if f.wait {
		return a.await(ctx, c, r)
	}
	if a.json {
		return a.printJSON(r)
	}
	a.printf("✓ %s: %s is %s\n", done, render.Inert(r.ID), render.Inert(engineclient.Short(r.State)))
	return nil
}

// controlCall is one of the client's four controls.
type controlCall func(ctx context.Context, endpoint, id string, body api.Control) (api.Rollout, error)

// repeated sends a control. The engine moves on by itself, so an etag that is a step
// old is not a conflict between people: it reads again and repeats.
func repeated(ctx context.Context, c *engineclient.Client, r api.Rollout, body api.Control, call controlCall) (api.Rollout, error) {
	const tries = 5
	for try := 1; ; try++ {
		after, err := call(ctx, r.EndpointID, r.ID, body)
		if !engineclient.IsStale(err) || try == tries {
			return after, err
		}
		if r, err = c.GetRollout(ctx, r.EndpointID, r.ID); err != nil {
			return r, err
		}
		body.ETag = r.ETag
	}
}

func (a *app) createRollout(cmd *cobra.Command, c *engineclient.Client, target string, f rolloutFlags) error {
	ctx := cmd.Context()
	spec, err := f.spec(cmd)
	if err != nil {
		return err
	}
	spec.TargetDeploymentID = target // until it is found
	if err := checked(spec); err != nil {
		return err
	}
	d, err := findDeployment(ctx, c, target)
	if err != nil {
		return err
	}
	ep, err := c.GetEndpoint(ctx, d.EndpointID)
	if err != nil {
		return err
	}
	spec.TargetDeploymentID = d.ID
	if spec.SourceDeploymentID, err = sourceOf(ctx, c, ep, d.ID, f.source); err != nil {
		return err
	}
	if f.preview {
		return a.preview(ctx, c, ep, spec)
	}
	r, err := c.CreateRollout(ctx, ep.ID, spec, "")
	if err != nil {
		return err
	}
	started, err := c.StartRollout(ctx, ep.ID, r.ID)
	if err != nil {
		return fmt.Errorf("created rollout %s but it did not start: %w. It holds the endpoint's slot; remove it with: sluice rm %s", r.ID, err, r.ID)
	}
	if f.wait {
		return a.await(ctx, c, started)
	}
	return a.showRollout(ctx, c, started)
}

// sourceOf infers the source: the single other deployment that has weight.
func sourceOf(ctx context.Context, c *engineclient.Client, ep api.Endpoint, target, given string) (string, error) {
	if given != "" {
		d, err := findDeployment(ctx, c, given)
		return d.ID, err
	}
	var found []string
	for _, w := range ep.TrafficSplit {
		if w.Weight > 0 && w.DeploymentID != target {
			found = append(found, w.DeploymentID)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", usagef("no other deployment of %s has traffic; give --source", ep.Name)
	}
	return "", usagef("several deployments of %s have traffic (%s); give --source", ep.Name, strings.Join(found, ", "))
}

// spec turns flags into the wire's spec.
func (f rolloutFlags) spec(cmd *cobra.Command) (api.RolloutSpec, error) {
	var s api.RolloutSpec
	switch {
	case f.blueGreen:
		s.BlueGreen = &api.BlueGreen{}
	case f.rolling:
		s.Rolling = &api.Rolling{}
	default:
		s.Canary = &api.Canary{}
		for _, text := range f.steps {
			n, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				return s, usagef("--steps: %q is not a whole number of percent", text)
			}
			s.Canary.Steps = append(s.Canary.Steps, api.CanaryStep{Traffic: n})
		}
		interval, err := span("--interval", f.interval)
		if err != nil {
			return s, err
		}
		s.Canary.StepInterval = interval
	}
	if s.Canary == nil && (len(f.steps) > 0 || f.interval != "") {
		return s, usagef("--steps and --interval go with --canary")
	}
	if cmd.Flags().Changed("final-source-replicas") {
		s.FinalSourceReplicas = &f.finalSource
	}
	if cmd.Flags().Changed("final-target-replicas") {
		s.FinalTargetReplicas = &f.finalTarget
	}
	if f.holdSource {
		s.Sluice = &api.SpecExtra{HoldSource: true}
	}
	if f.metric == "" {
		for _, flag := range []string{"metric-stat", "metric-operator", "metric-threshold", "metric-direction", "metric-max-regression", "metric-window"} {
			if cmd.Flags().Changed(flag) {
				return s, usagef("--%s needs --metric", flag)
			}
		}
		return s, nil
	}
	rule, err := f.rule(cmd)
	s.Metrics = []api.MetricRule{rule}
	return s, err
}

// checked refuses a spec that can never be right, in the sentences that HCL gets. The
// source may still be open.
func checked(s api.RolloutSpec) error {
	problems := planning.Check(s)
	if len(problems) == 0 {
		return nil
	}
	p := problems[0]
	if flags, ok := flagsOf[p.Field]; ok {
		return usagef("%s: %s (%s)", p.Field, p, flags)
	}
	return usagef("%s: %s", p.Field, p)
}

// flagsOf are the flags behind a field of the spec.
var flagsOf = map[string]string{
	"canary.stepInterval":                             "--interval",
	"finalSourceReplicas":                             "--final-source-replicas",
	"finalTargetReplicas":                             "--final-target-replicas",
	"metrics":                                         "--metric",
	"metrics[0]":                                      "--metric-max-regression or --metric-direction; or --metric-operator with --metric-threshold",
	"metrics[0].name":                                 "--metric",
	"metrics[0].stat":                                 "--metric-stat",
	"metrics[0].percentile":                           "--metric-stat",
	"metrics[0].window":                               "--metric-window",
	"metrics[0].thresholdCheck.operator":              "--metric-operator",
	"metrics[0].thresholdCheck.value":                 "--metric-threshold",
	"metrics[0].regressionCheck.direction":            "--metric-direction",
	"metrics[0].regressionCheck.maxRegressionPercent": "--metric-max-regression",
}

// rule is the gate that the flags ask for. Each flag that is given goes in, so that
// two checks at once, or none, are refused and never become another gate.
func (f rolloutFlags) rule(cmd *cobra.Command) (api.MetricRule, error) {
	r := api.MetricRule{Name: f.metric}
	switch {
	case f.stat == "avg":
		r.Stat = api.PrefixStat + "AVG"
	case strings.HasPrefix(f.stat, "p"):
		n, err := strconv.Atoi(f.stat[1:])
		if err != nil {
			return r, usagef("--metric-stat %q: use avg, p50, p90, p95 or p99", f.stat)
		}
		r.Stat, r.Percentile = api.PrefixStat+"PERCENTILE", &n
	case f.stat != "":
		return r, usagef("--metric-stat %q: use avg, p50, p90, p95 or p99", f.stat)
	}
	var err error
	if r.Window, err = span("--metric-window", f.window); err != nil {
		return r, err
	}
	changed := cmd.Flags().Changed
	if changed("metric-operator") || changed("metric-threshold") {
		r.ThresholdCheck = &api.ThresholdCheck{Value: &f.threshold}
		if f.operator != "" {
			r.ThresholdCheck.Operator = api.PrefixOperator + strings.ToUpper(f.operator)
		}
	}
	if changed("metric-direction") || changed("metric-max-regression") {
		direction := strings.ToUpper(strings.ReplaceAll(f.direction, "-", "_"))
		r.RegressionCheck = &api.RegressionCheck{Direction: api.PrefixDirection + direction, MaxRegressionPercent: &f.maxRegression}
	}
	return r, nil
}

// span reads 600s, 10m or a bare number of seconds, as the platform's CLI does.
func span(flag, text string) (*api.Duration, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // an absent flag is no duration
	}
	if n, err := strconv.Atoi(text); err == nil {
		text = strconv.Itoa(n) + "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, usagef("%s %q: use 600s, 10m or 600 (seconds)", flag, text)
	}
	v := api.Duration(d)
	return &v, nil
}
