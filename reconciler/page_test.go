package reconciler

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// thePage is docs/reconcile.md.
func thePage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "reconcile.md"))
	require.NoError(t, err)
	return string(text)
}

func TestThePageTellsEveryCommandAndWhoMay(t *testing.T) {
	page := thePage(t)
	require.Contains(t, page, "```text\n"+CommandHelp()+"```\n")
	told := map[Verb]string{}
	_, table, ok := strings.Cut(page, "| verb | who may, unless configured |")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\| (\\w+) \\|$").FindAllStringSubmatch(table, -1) {
		for _, verb := range strings.Split(row[1], ", ") {
			told[Verb(strings.Trim(verb, "`"))] = row[2]
		}
	}
	want := map[Verb]string{}
	for _, u := range usages {
		want[u.verb] = DefaultGrants(u.verb)[0].Role.String()
	}
	require.Equal(t, want, told)
}

func TestThePageTellsEveryMetric(t *testing.T) {
	descs := make(chan *prometheus.Desc, 100)
	newMeters().registry.Describe(descs)
	close(descs)
	var want []string
	for d := range descs {
		text := d.String()
		name := regexp.MustCompile(`fqName: "([a-z_]+)", help: "([^"]+)"`).FindStringSubmatch(text)
		require.NotNil(t, name, text)
		labels := ""
		if m := regexp.MustCompile(`variableLabels: \{([^}]+)\}`).FindStringSubmatch(text); m != nil {
			labels = "{" + strings.ReplaceAll(m[1], ",", ", ") + "}"
		}
		want = append(want, "| `"+name[1]+labels+"` | "+strings.TrimSuffix(name[2], ".")+" |")
	}
	slices.Sort(want)
	require.Greater(t, len(want), 5)
	told := regexp.MustCompile("(?m)^\\| `sluice_reconciler_.*$").FindAllString(thePage(t), -1)
	require.Equal(t, strings.Join(want, "\n"), strings.Join(told, "\n"))
}

func TestThePageTellsEveryCallOfTheDoor(t *testing.T) {
	source, err := os.ReadFile("http.go")
	require.NoError(t, err)
	var want []string
	for _, m := range regexp.MustCompile(`mux\.Handle(?:Func)?\("((?:GET|POST) [^"]+)"`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, regexp.MustCompile(`\{(\w+)\}`).ReplaceAllStringFunc(m[1], func(s string) string { return strings.ToUpper(strings.Trim(s, "{}")) }))
	}
	require.Greater(t, len(want), 8)
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `((?:GET|POST) [^`]+)` \\|").FindAllStringSubmatch(thePage(t), -1) {
		told = append(told, m[1])
	}
	require.Equal(t, want, told)
}

func TestThePageTellsEveryPhase(t *testing.T) {
	_, table, ok := strings.Cut(thePage(t), "| phase | what it means |")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n## ")
	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\| ").FindAllStringSubmatch(table, -1) {
		for _, p := range strings.Split(row[1], ", ") {
			told = append(told, strings.Trim(p, "`"))
		}
	}
	var want []string
	for _, p := range phases() {
		want = append(want, string(p))
	}
	require.ElementsMatch(t, want, told)
}

// What the page shows for checking a signature takes what a webhook sends, and nothing
// that was changed on the way or is old.
func TestThePagesSignatureCheckHolds(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	snippet := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(thePage(t))
	require.NotNil(t, snippet)
	script := snippet[1] + `
import json, sys
given = json.load(sys.stdin)
print(genuine(given["key"].encode(), given["headers"], given["body"].encode()))
`
	type sent struct {
		Key     string            `json:"key"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	deliver := func(at time.Time) (out sent) {
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			out = sent{"key", map[string]string{}, string(body)}
			for name := range req.Header {
				out.Headers[name] = req.Header.Get(name)
			}
		}))
		defer receiver.Close()
		hook := &notify.Webhook{URL: func() (string, error) { return receiver.URL, nil }, Sign: func() (string, error) { return "key", nil }, Client: receiver.Client(), Now: func() time.Time { return at }}
		require.NoError(t, hook.Notify(t.Context(), notify.Event{Key: []string{"x"}, Kind: "rollout.completed", At: at, Title: "done", Text: "done"}))
		return out
	}
	check := func(s sent) string {
		given, err := json.Marshal(s)
		require.NoError(t, err)
		run := exec.CommandContext(t.Context(), python, "-c", script)
		run.Stdin = strings.NewReader(string(given))
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	good := deliver(time.Now())
	require.Equal(t, "True", check(good))
	changed, other, old := good, good, deliver(time.Now().Add(-time.Hour))
	changed.Body += " "
	other.Key = "another"
	for _, bad := range []sent{changed, other, old} {
		require.Equal(t, "False", check(bad))
	}
}
