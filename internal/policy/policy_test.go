package policy_test

import (
	"context"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func folder(files map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, text := range files {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

func load(t *testing.T, files map[string]string) *policy.Rules {
	t.Helper()
	r, err := policy.Load(folder(files))
	require.NoError(t, err)
	return r
}

func TestDenialsComeFirstAndNameTheirRule(t *testing.T) {
	r := load(t, map[string]string{
		"a.rego": `package a
deny contains {"msg": "too large", "rule": "size", "address": input.address, "override": ["leads"]} if { input.size > data.limits.size }`,
		"deep/b.rego": `package deep.b
warn contains "large" if { input.size > 1 }`,
		"data.yaml": "limits: {size: 10}\n",
	})
	v, err := r.Judge(t.Context(), policy.Question{Plan: []byte(`{"size": 11, "address": "x"}`), Now: noon})
	require.NoError(t, err)
	require.True(t, v.Denied())
	require.Equal(t, []policy.Remark{
		{Severity: policy.Deny, Message: "too large", Rule: "size", Address: "x", Override: []string{"leads"}},
		{Severity: policy.Warn, Message: "large"},
	}, v.Remarks)

	v, err = r.Judge(t.Context(), policy.Question{Plan: []byte(`{"size": 11}`), Data: []byte(`{"limits": {"size": 20}}`), Now: noon})
	require.NoError(t, err)
	require.False(t, v.Denied(), "data that comes with the question goes over the rules' own")
}

func TestTheInstantIsGiven(t *testing.T) {
	r := load(t, map[string]string{"a.rego": `package a
warn contains time.weekday(time.now_ns())`})
	v, err := r.Judge(t.Context(), policy.Question{Plan: []byte(`{}`), Now: noon})
	require.NoError(t, err)
	require.Equal(t, "Wednesday", v.Remarks[0].Message)
}

func TestRulesThatCannotJudgeAreErrorsNotPasses(t *testing.T) {
	for name, c := range map[string]struct{ rule, plan, says string }{
		"builtin error":    {`deny contains "x" if { time.parse_duration_ns(input.wait) > 0 }`, `{"wait": "soon"}`, "time.parse_duration_ns"},
		"not a set":        {`deny := 3`, `{}`, "not a set"},
		"number in a set":  {`deny contains 3`, `{}`, "neither a text nor an object"},
		"object, no msg":   {`deny contains {"rule": "x"}`, `{}`, "neither a text nor an object"},
		"plan is not JSON": {`deny contains "x" if { input.a }`, `nonsense`, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, map[string]string{"a.rego": "package a\n" + c.rule}).Judge(t.Context(), policy.Question{Plan: []byte(c.plan), Now: noon})
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestFoldersThatWouldPassEverythingAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"empty":               {map[string]string{}, "no rule named deny or warn"},
		"only tests":          {map[string]string{"a_test.rego": "package a\ndeny contains \"x\""}, "no rule named deny or warn"},
		"another name":        {map[string]string{"a.rego": "package a\nrefuse contains \"x\""}, "no rule named deny or warn"},
		"syntax":              {map[string]string{"sub/a.rego": "package a\n\ndeny contains {"}, "sub/a.rego:3"},
		"old syntax":          {map[string]string{"a.rego": "package a\ndeny[msg] { msg := \"x\" }"}, "a.rego:2"},
		"network":             {map[string]string{"a.rego": "package a\ndeny contains \"x\" if { http.send({\"method\": \"get\", \"url\": \"http://example.com\"}) }"}, "http.send"},
		"environment":         {map[string]string{"a.rego": "package a\ndeny contains \"x\" if { opa.runtime().env }"}, "opa.runtime"},
		"two data files":      {map[string]string{"a.rego": "package a\ndeny contains \"x\"", "data.json": `{"a":1}`, "sub/data.json": `{"b":1}`}, "another data file"},
		"data is not objects": {map[string]string{"a.rego": "package a\ndeny contains \"x\"", "data.json": `[1]`}, "data.json"},
		"too large":           {map[string]string{"a.rego": "package a\ndeny contains \"x\"\n#" + string(make([]byte, 1<<20))}, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Load(folder(c.files))
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestARuleThatNeverEndsIsStopped(t *testing.T) {
	r := load(t, map[string]string{"a.rego": `package a
deny contains "x" if { some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a * b == -1 }`})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := r.Judge(ctx, policy.Question{Plan: []byte(`{}`), Now: noon})
	require.Error(t, err)
}
