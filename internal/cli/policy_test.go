package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/cli"
)

func TestPolicyDeniesWithExitOneAndSaysWhoMayLiftIt(t *testing.T) {
	s := shell{t, nil}
	dir := folder(t, map[string]string{
		"size.rego": `package a
deny contains {"msg": "too large", "rule": "size", "address": "sluice_rollout.x", "override": ["leads"]} if { input.size > data.most }
warn contains "it is Friday" if { time.weekday(time.now_ns()) == "Friday" }`,
		"data.json": `{"most": 10}`,
		"plan.json": `{"size": 11}`, "more.json": `{"most": 20}`, "broken.json": `{`,
	})
	plan := []string{"policy", dir + "/plan.json", "--rules", dir}
	at := func(more ...string) []string { return append(append([]string{}, plan...), more...) }
	s.run(at("--at", "2026-03-04T12:00:00Z")...).exits(cli.ExitFailed, "deny  sluice_rollout.x: too large [size]; may be lifted by leads", "denied: 1 denial")
	s.run(at("--at", "2026-03-06T12:00:00Z", "--data", dir+"/more.json")...).exits(cli.ExitOK, "warn  it is Friday", "allowed, with 1 warning")
	s.run(at("--at", "2026-03-04T12:00:00Z", "--data", dir+"/more.json")...).exits(cli.ExitOK, "allowed")
	v := s.run(at("--json", "--at", "2026-03-04T12:00:00Z")...).exits(cli.ExitFailed).json()
	require.Equal(t, false, v["allowed"])
	require.Equal(t, "size", v["remarks"].([]any)[0].(map[string]any)["rule"])

	for _, c := range []struct {
		code int
		says string
		line []string
	}{
		{cli.ExitUsage, "rules", []string{"policy", dir + "/plan.json"}},
		{cli.ExitUsage, "want an instant", at("--at", "noon")},
		{cli.ExitUsage, "want a folder", []string{"policy", dir + "/plan.json", "--rules", dir + "/size.rego"}},
		{cli.ExitFailed, "read the rules", []string{"policy", dir + "/plan.json", "--rules", dir + "/none"}},
		{cli.ExitFailed, "terraform show -json", []string{"policy", dir + "/none.json", "--rules", dir}},
		{cli.ExitFailed, "not JSON", []string{"policy", dir + "/broken.json", "--rules", dir}},
	} {
		r := s.run(c.line...)
		require.Equal(t, c.code, r.code, c.line)
		require.Contains(t, r.errs, c.says)
	}
}
