package policy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// Severity is what a rule's set is named.
type Severity string

// The severities.
const (
	Deny Severity = "deny" // refuses the plan
	Warn Severity = "warn" // is told
)

// Remark is one thing that a rule says of a plan.
type Remark struct {
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Rule     string   `json:"rule,omitempty"`     // the rule's own name for itself
	Address  string   `json:"address,omitempty"`  // of the object that it is about
	Override []string `json:"override,omitempty"` // who may lift a denial; empty for nobody
}

// Verdict is what all rules say of a plan: denials first, then by rule and address.
type Verdict struct{ Remarks []Remark }

// Denied reports whether any rule refuses the plan.
func (v Verdict) Denied() bool {
	return slices.ContainsFunc(v.Remarks, func(r Remark) bool { return r.Severity == Deny })
}

// Question is a plan to judge.
type Question struct {
	Plan []byte    // JSON, as terraform show -json prints it
	Data []byte    // a JSON object whose keys come over those of the rules' own data; empty for none
	Now  time.Time // what the rules take for the present
}

// Judge asks every rule about a plan. A rule that fails is an error: a plan that could
// not be judged is not allowed. ctx bounds the time that the rules may take.
func (r *Rules) Judge(ctx context.Context, q Question) (Verdict, error) {
	var plan any
	decoder := json.NewDecoder(bytes.NewReader(q.Plan))
	decoder.UseNumber()
	if err := decoder.Decode(&plan); err != nil {
		return Verdict{}, fmt.Errorf("judge a plan: it is not JSON: %w", err)
	}
	data := maps.Clone(r.data)
	if len(q.Data) > 0 {
		given := document{}
		if err := json.Unmarshal(q.Data, &given); err != nil {
			return Verdict{}, fmt.Errorf("judge a plan: the data beside it is not a JSON object: %w", err)
		}
		maps.Copy(data, given)
	}
	var v Verdict
	for _, set := range r.verdicts {
		remarks, err := r.ask(ctx, set, plan, data, q.Now)
		if err != nil {
			return Verdict{}, fmt.Errorf("judge a plan by %s: %w", set.ref, err)
		}
		v.Remarks = append(v.Remarks, remarks...)
	}
	slices.SortStableFunc(v.Remarks, func(a, b Remark) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Message, b.Message))
	})
	return v, nil
}

// ask evaluates one set.
func (r *Rules) ask(ctx context.Context, set query, plan any, data document, now time.Time) ([]Remark, error) {
	results, err := rego.New(
		rego.Compiler(r.compiler),
		rego.Query(set.ref),
		rego.Store(inmem.NewFromObject(data)),
		rego.Input(plan),
		rego.Time(now),
		rego.StrictBuiltinErrors(true),
	).Eval(ctx)
	if err != nil {
		return nil, err
	}
	var out []Remark
	for _, result := range results {
		for _, e := range result.Expressions {
			said, ok := e.Value.([]any)
			if !ok {
				return nil, fmt.Errorf("it is %T and not a set; write `%s contains … if { … }`", e.Value, set.severity)
			}
			for _, value := range said {
				remark, err := remarkOf(value)
				if err != nil {
					return nil, err
				}
				remark.Severity = set.severity
				out = append(out, remark)
			}
		}
	}
	return out, nil
}

// remarkOf reads one element of a set: a text, or an object with msg.
func remarkOf(value any) (Remark, error) {
	if text, ok := value.(string); ok {
		return Remark{Message: text}, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return Remark{}, err
	}
	var said struct {
		Msg      string   `json:"msg"`
		Rule     string   `json:"rule"`
		Address  string   `json:"address"`
		Override []string `json:"override"`
	}
	if err := json.Unmarshal(raw, &said); err != nil || said.Msg == "" {
		return Remark{}, errors.Join(fmt.Errorf("it says %s, which is neither a text nor an object with msg", raw), err)
	}
	return Remark{Message: said.Msg, Rule: said.Rule, Address: said.Address, Override: said.Override}, nil
}
