package reconciler

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

var update = flag.Bool("update", false, "write the reference page and the golden files")

func TestTheCompleteConfigurationIsReadWholly(t *testing.T) {
	t.Setenv("SLUICE_TEST_KEY", "x")
	c, found := LoadConfig("testdata/config/complete.hcl")
	require.Empty(t, found, "%v", found)
	key := Secret{Env: "SLUICE_TEST_KEY"}
	require.Equal(t, EngineConfig{URL: "https://engine.example.com", Project: "proj_a", APIKey: key}, c.Engine)
	require.Equal(t, StateConfig{Postgres: key, Mirrors: "testdata/config/mirrors", Instance: "models-1", Keep: 720 * time.Hour}, c.State)
	require.Equal(t, HTTPConfig{Listen: ":8090", Keys: []KeyConfig{{"ana", key, forge.Admin}, {"dashboard", key, forge.Read}}}, c.HTTP)
	var names []string
	for _, r := range c.Repositories {
		names = append(names, r.Name)
	}
	require.Equal(t, []string{"by-commit", "by-tag", "by-token", "models", "platform"}, names)
	r := c.Repositories[3]
	require.Equal(t, AuthConfig{SSHUser: "deploy", SSHKey: key, Passphrase: key, KnownHosts: "testdata/config/known_hosts"}, r.Auth)
	require.Equal(t, gitsource.Wanted{Semver: ">=1.2.0 <2.0.0"}, r.Wanted)
	require.Equal(t, []any{Shallow, 30 * time.Second, 5 * time.Minute, ApproveByDigest, Every, CorrectDrift, PruneConfig{PruneOn, 10}},
		[]any{r.Store, r.Interval, r.Deadline, r.Approval, r.Supersede, r.Drift, r.Prune})
	require.Equal(t, VerifyConfig{VerifyBoth, "testdata/config/known_hosts", "testdata/config/known_hosts"}, r.Verify)
	require.Equal(t, []Grant{{Role: forge.Write}, {Team: "acme/ml"}, {User: "ana"}}, r.Forge.Permissions[Resume])
	require.Equal(t, []Grant{}, r.Forge.Permissions[Promote], "nobody, which is not the default")
	require.Equal(t, []any{GitLab, "acme/ml/models", 20 * time.Second}, []any{r.Forge.Kind, r.Forge.Repository, r.Forge.Interval})
	require.Equal(t, []StackConfig{
		{Name: "prod", Folder: "prod", VarFiles: []string{"prod.tfvars", "../shared/eu.tfvars"}, Variables: map[string]string{"region": "eu", "replicas": "3"}, DependsOn: []StackKey{{"models", "staging"}, {"platform", "base"}}},
		{Name: "staging", Folder: "prod/staging"},
	}, r.Stacks)
	require.Equal(t, []PolicyConfig{
		{Path: "testdata/config/policies", Overriders: map[string][]Grant{"on-call lead": {{Role: forge.Admin}, {Team: "acme/sre"}}}},
		{Repository: "platform", Folder: "rules", Overriders: map[string][]Grant{}},
	}, r.Policies)
	require.Equal(t, &AppConfig{12, 34, key}, c.Repositories[4].Auth.App)
	require.Equal(t, []any{[]Grant{{Role: forge.Write}}, []Grant{}}, []any{c.Repositories[2].Permissions[Suspend], c.Repositories[2].Permissions[Promote]})
	require.Nil(t, c.Repositories[0].Permissions)
	require.Equal(t, UseAgent, c.Repositories[0].Auth.SSHAgent)
	require.Equal(t, NotifyConfig{"ops", Webhook, key, key, []string{"rollout.parked", "source.*"}, time.Hour}, c.Notify[0])
	require.Zero(t, c.Notify[1].Remind)
	require.Equal(t, []StackKey{{"models", "prod"}, {Repository: "platform"}}, c.Freezes[0].Stacks)
	require.Equal(t, Freeze{Name: "weekends", Cron: "0 18 * * 5", For: 62 * time.Hour, Zone: "Europe/Berlin"}, c.Freezes[1])
	require.Equal(t, Limits{3, 2, 0.5, 65536, 100}, c.Limits)
}

// TestTheCompleteConfigurationHasEveryAttribute keeps the file above and the reference
// in step: each attribute is in it, in a block of its kind.
func TestTheCompleteConfigurationHasEveryAttribute(t *testing.T) {
	text, err := os.ReadFile("testdata/config/complete.hcl")
	require.NoError(t, err)
	body, found := declaration.Parse(declaration.File{Name: "complete.hcl", Bytes: text})
	require.Empty(t, found)
	d := newDecoder("")
	written := map[string]bool{}
	var walk func(s *scope)
	walk = func(s *scope) {
		for name := range s.body.Attributes {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "_env"), "_file")
			written[s.block.Path+"."+name] = true
		}
		for _, child := range s.block.children() {
			for _, in := range s.blocks(child) {
				walk(in)
			}
		}
	}
	walk(d.top(body))
	for _, b := range Reference {
		for _, a := range b.Attributes {
			if p := b.Path + "." + a.Name; p != "state.path" { // excludes postgres
				require.True(t, written[p], "%s is not in testdata/config/complete.hcl", p)
			}
		}
	}
}

func TestDefaultsAreThoseOfTheReference(t *testing.T) {
	t.Setenv("SLUICE_TEST_KEY", "x")
	c, found := LoadConfig("testdata/config/least.hcl")
	require.Empty(t, found, "%v", found)
	r := c.Repositories[0]
	require.Equal(t, StateConfig{Path: "testdata/config/sluice-reconciler.db", Mirrors: "testdata/config/sluice-mirrors", Keep: 90 * 24 * time.Hour}, c.State)
	require.Equal(t, Limits{Fetches: 4, PerHost: 5, FileBytes: 1 << 20, Files: 1000}, c.Limits)
	require.Equal(t, []any{Mirror, time.Minute, 2 * time.Minute, ApproveByMerge, Latest, ReportDrift, PruneConfig{PruneOff, 30}},
		[]any{r.Store, r.Interval, r.Deadline, r.Approval, r.Supersede, r.Drift, r.Prune})
	require.Equal(t, []any{"acme/models", time.Minute}, []any{r.Forge.Repository, r.Forge.Interval})
	require.Equal(t, "git", r.Auth.SSHUser)
	require.Equal(t, ".", r.Stacks[0].Folder)
	require.Len(t, r.Forge.Permissions, len(verbs))
	for _, v := range verbs {
		require.Equal(t, DefaultGrants(v), r.Forge.Permissions[v], v)
	}
}

// TestMistakesAreToldAllAtOnceEachAtItsPlace reads the folder's files and compares what
// is said of them with the text beside them.
func TestMistakesAreToldAllAtOnceEachAtItsPlace(t *testing.T) {
	t.Setenv("SLUICE_TEST_KEY", "x")
	files, err := filepath.Glob("testdata/config/mistakes/*.hcl")
	require.NoError(t, err)
	require.Greater(t, len(files), 5)
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			_, found := parseConfig(declaration.File{Name: filepath.Base(f), Bytes: text}, filepath.Dir(f))
			var out bytes.Buffer
			require.NoError(t, found.Render(&out))
			golden := strings.TrimSuffix(f, ".hcl") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), out.String())
			require.NotContains(t, out.String(), "geheim", "a secret is never shown")
			for _, d := range found {
				require.NotEmpty(t, d.Range.Filename, "%s has no place", d)
				require.Positive(t, d.Range.Start.Line)
			}
		})
	}
}

func TestAFileThatCannotBeReadIsToldWithItsPath(t *testing.T) {
	for name, path := range map[string]string{"not there": filepath.Join(t.TempDir(), "none.hcl"), "a folder": t.TempDir()} {
		_, found := LoadConfig(path)
		require.True(t, found.HasErrors(), name)
		require.Contains(t, found[0].Summary, path)
	}
	big := filepath.Join(t.TempDir(), "big.hcl")
	require.NoError(t, os.WriteFile(big, bytes.Repeat([]byte("# x\n"), 100_000), 0o600))
	_, found := LoadConfig(big)
	require.ErrorContains(t, found.Err(), "too large")
	require.NoError(t, os.WriteFile(big, []byte("x = "+strings.Repeat("[", 10_000)), 0o600))
	_, found = LoadConfig(big)
	require.ErrorContains(t, found.Err(), "deep within each other")
}

func TestASecretFileThatOthersCanReadIsAWarning(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("s"), mode))
		require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	write("open", 0o644)
	write("closed", 0o600)
	text := `engine {
  url          = "https://e.example.com"
  api_key_file = "%s"
}
repository "r" {
  url = "https://git.example.com/a/b"
  stack "s" {}
}
`
	for name, want := range map[string]string{"open": "Others can read", "gone": "cannot be read here", "closed": ""} {
		path := filepath.Join(dir, "c.hcl")
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, text, name), 0o600))
		c, found := LoadConfig(path)
		require.NoError(t, found.Err(), name)
		require.Equal(t, filepath.Join(dir, name), c.Engine.APIKey.File, "from the file's folder")
		if want == "" {
			require.Empty(t, found)
			continue
		}
		require.Len(t, found, 1, name)
		require.Equal(t, declaration.Warning, found[0].Severity)
		require.Contains(t, found[0].Summary, want)
		require.Equal(t, 3, found[0].Range.Start.Line)
		require.Contains(t, found[0].Line, "api_key_file")
	}
}

func TestFlagsMakeTheSameAsAFile(t *testing.T) {
	t.Setenv("SLUICE_TEST_KEY", "x")
	key := Secret{Env: "SLUICE_TEST_KEY"}
	c, found := FromFlags(Flags{EngineURL: "http://127.0.0.1:8080", APIKey: key, URL: "https://github.com/acme/models.git", Forge: &ForgeConfig{Kind: GitHub, Token: key}})
	require.Empty(t, found, "%v", found)
	want, found := LoadConfig("testdata/config/least.hcl")
	require.NoError(t, found.Err())
	want.State.Path, want.State.Mirrors = "sluice-reconciler.db", "sluice-mirrors"
	want.Repositories[0].Name, want.Repositories[0].Stacks[0].Name = "repository", "stack"
	require.Equal(t, want, c)

	_, found = FromFlags(Flags{URL: "/srv/models", Interval: time.Second, Folder: "../x"})
	text := found.Err().Error()
	for _, part := range []string{"No engine", "local path", "too short", "leads out"} {
		require.Contains(t, text, part)
	}
	require.NotContains(t, text, "\x00")
}

func TestAddressesAreToldApart(t *testing.T) {
	for text, want := range map[string]string{
		"https://git.example.com/a/b.git":      "http git.example.com a/b",
		"https://GIT.example.com:8443/a/b/":    "http git.example.com:8443 a/b",
		"ssh://git@git.example.com:22/a/b.git": "ssh git.example.com:22 a/b",
		"git@git.example.com:a/b.git":          "ssh git.example.com a/b",
		"git.example.com:a/b":                  "ssh git.example.com a/b",
		"/srv/git":                             "local  /srv/git",
		"../x":                                 "local  ../x",
		`C:\git`:                               `local  C:\git`,
		"file:///srv/git":                      "local  srv/git",
		"https://user:geheim@host/a":           "error",
		"https://token@host/a":                 "error",
		"ssh://git:geheim@host/a":              "error",
		"ftp://host/a":                         "error",
		"https://host":                         "error",
		"https://[::1/a:geheim@":               "error",
	} {
		a, err := parseAddress(text)
		got := fmt.Sprint(a.Transport, " ", a.Host, " ", a.Path)
		if err != nil {
			got = "error"
			require.NotContains(t, err.Error(), "geheim")
		}
		require.Equal(t, want, got, text)
	}
}

const pageName = "../docs/reconcile.md"

var (
	begin = "<!-- The reference below is written by: go test ./reconciler -run TestTheReferencePageIsInStep -update -->\n"
	end   = "<!-- The end of the reference. -->\n"
)

// TestTheReferencePageIsInStep keeps docs/reconcile.md as the reference has it.
func TestTheReferencePageIsInStep(t *testing.T) {
	page, err := os.ReadFile(pageName)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), begin)
	require.True(t, ok)
	old, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := "\n" + referenceText()
	if *update {
		require.NoError(t, os.WriteFile(pageName, []byte(before+begin+want+end+after), 0o600))
		old = want
	}
	require.Equal(t, want, old)
	samples := regexp.MustCompile("(?s)```hcl\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, samples)
	for _, m := range samples {
		_, found := parseConfig(declaration.File{Name: "docs/reconcile.md", Bytes: []byte(m[1])}, t.TempDir())
		require.NoError(t, found.Err(), "an example of the page")
	}
}

func referenceText() string {
	var b strings.Builder
	for _, block := range Reference {
		label := ""
		if block.Label != "" {
			label = fmt.Sprintf(" %q", block.Label)
		}
		fmt.Fprintf(&b, "### %s\n\n`%s%s { … }`: %s\n", strings.ReplaceAll(block.Path, ".", " › "), block.name(), label, block.Doc)
		b.WriteString("\n| attribute | is | default | meaning |\n|---|---|---|---|\n")
		for _, a := range block.Attributes {
			name, value := "`"+a.Name+"`", ""
			if a.Type == SecretType {
				name = "`" + a.Name + "_file` or `" + a.Name + "_env`"
			}
			if a.Default != "" {
				value = "`" + a.Default + "`"
			}
			kind := string(a.Type)
			if len(a.Choices) > 0 {
				kind = "`" + strings.Join(a.Choices, "`, `") + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, kind, value, strings.ReplaceAll(a.Doc, "*.tfvars", "`*.tfvars`"))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// FuzzLoadConfig: a hostile file is refused or read, and never more than that.
func FuzzLoadConfig(f *testing.F) {
	files, err := filepath.Glob("testdata/config/*.hcl")
	require.NoError(f, err)
	more, err := filepath.Glob("testdata/config/mistakes/*.hcl")
	require.NoError(f, err)
	for _, name := range append(files, more...) {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`freeze "x" { cron = "* * * * *" for = "744h" zone = "Europe/Berlin" }`))
	f.Add([]byte(`limits { rollouts = 1e400 per_host = -0.0 files = 9999999999999999999999 }`))
	f.Add([]byte("repository \"\x00\" { url = \"${a}\" stack \"s\" { variables = { a = null, (1) = [] } } }"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, found := parseConfig(declaration.File{Name: "fuzz.hcl", Bytes: text}, "/nowhere")
		require.LessOrEqual(t, len(found), 200)
		var out bytes.Buffer
		require.NoError(t, found.Render(&out))
		if found.HasErrors() {
			return
		}
		require.NotEmpty(t, c.Repositories)
		for _, z := range c.Freezes {
			z.Frozen(time.Unix(1_790_000_000, 0))
		}
	})
}
