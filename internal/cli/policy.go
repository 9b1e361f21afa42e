package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// policyFlags are the words of "sluice policy".
type policyFlags struct {
	rules, data, at string
	within          time.Duration
}

func (a *app) policyCommand() *cobra.Command {
	var f policyFlags
	c := &cobra.Command{
		Use:   "policy PLAN.json --rules DIR",
		Short: "Judge a plan by Rego rules",
		Long: `Judge a plan by the rules of a folder, as a pipeline would before an apply. PLAN.json is
what terraform show -json prints of a saved plan; - reads it from standard input. A rule
is a set named deny or warn in any *.rego file; data.json beside them are their limits.
Rules reach no network, no environment and no clock: --at says what they take for now.

Exit codes: 0 nothing denies it, 1 denied or it cannot be judged, 2 the command line.`,
		Example: `  terraform show -json plan.bin | sluice policy - --rules examples/policy/rego
  sluice policy plan.json --rules policy --data approvals.json --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.judge(cmd.Context(), cmd.InOrStdin(), args[0], f)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.rules, "rules", "", "folder of *.rego files and their data.json")
	fl.StringVar(&f.data, "data", "", "JSON file that goes over the rules' data, such as approvals")
	fl.StringVar(&f.at, "at", "", "the instant that the rules take for now, RFC 3339 (default: now)")
	fl.DurationVar(&f.within, "within", 10*time.Second, "how long the rules may take")
	_ = c.MarkFlagRequired("rules")
	return c
}

// judged is the JSON of "sluice policy".
type judged struct {
	Allowed bool            `json:"allowed"`
	Remarks []policy.Remark `json:"remarks"`
}

func (a *app) judge(ctx context.Context, stdin io.Reader, plan string, f policyFlags) error {
	doc, err := readPlan(stdin, plan)
	if err != nil {
		return err
	}
	v, err := verdict(ctx, doc, f)
	if err != nil {
		return err
	}
	return a.printVerdict(v)
}

// verdict asks the rules of a folder about a plan.
func verdict(ctx context.Context, plan []byte, f policyFlags) (policy.Verdict, error) {
	q := policy.Question{Now: time.Now(), Plan: plan}
	var err error
	if f.at != "" {
		if q.Now, err = time.Parse(time.RFC3339, f.at); err != nil {
			return policy.Verdict{}, usagef("--at %q: want an instant such as 2026-03-04T12:00:00Z", f.at)
		}
	}
	info, err := os.Stat(f.rules)
	if err != nil {
		return policy.Verdict{}, fmt.Errorf("read the rules: %w", err)
	}
	if !info.IsDir() {
		return policy.Verdict{}, usagef("%s: want a folder of *.rego files", f.rules)
	}
	rules, err := policy.Load(os.DirFS(f.rules))
	if err != nil {
		return policy.Verdict{}, err
	}
	if f.data != "" {
		if q.Data, err = os.ReadFile(f.data); err != nil {
			return policy.Verdict{}, fmt.Errorf("read the data: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, f.within)
	defer cancel()
	v, err := rules.Judge(ctx, q)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return v, fmt.Errorf("the rules did not end within %s: the plan is not allowed; give them more with --within", f.within)
	}
	return v, err
}

// maxPlan bounds what is read as a plan, in bytes.
const maxPlan = 256 << 20

func readPlan(stdin io.Reader, name string) ([]byte, error) {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			var missing *fs.PathError
			if errors.As(err, &missing) {
				return nil, fmt.Errorf("read the plan: %w; make it with terraform plan -out=plan.bin && terraform show -json plan.bin", err)
			}
			return nil, err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	b, err := io.ReadAll(io.LimitReader(in, maxPlan+1))
	if err == nil && len(b) > maxPlan {
		err = fmt.Errorf("the plan is larger than %d bytes", maxPlan)
	}
	return b, err
}

// printVerdict prints what the rules said and ends with the exit code that follows.
func (a *app) printVerdict(v policy.Verdict) error {
	if a.json {
		if err := a.printJSON(judged{Allowed: !v.Denied(), Remarks: append([]policy.Remark{}, v.Remarks...)}); err != nil {
			return err
		}
	} else if err := render.Policy(a.Out, v, a.options(time.Time{})); err != nil {
		return err
	}
	if v.Denied() {
		return &endedError{ExitFailed}
	}
	return nil
}
