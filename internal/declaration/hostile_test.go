package declaration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func output(expr string) string { return "output \"o\" {\n  value = " + expr + "\n}\n" }

// Each bomb is refused, and at once.
func TestBombsAreRefusedBeforeTheyGoOff(t *testing.T) {
	laughs := "locals {\n  l0 = \"" + strings.Repeat("ha", 50) + "\"\n"
	squares := "locals {\n  s0 = 1e300\n"
	for i := range 40 {
		laughs += fmt.Sprintf("  l%d = \"%s\"\n", i+1, strings.Repeat(fmt.Sprintf("${local.l%d}", i), 10))
		squares += fmt.Sprintf("  s%d = local.s%d * local.s%d\n", i+1, i, i)
	}
	for name, src := range map[string]string{
		"brackets":       output(strings.Repeat("[", 100_000)),
		"braces":         strings.Repeat("a {\n", 50_000),
		"templates":      output(strings.Repeat(`"${`, 10_000)),
		"calls":          output(strings.Repeat("upper(", 30_000)),
		"minuses":        output(strings.Repeat("-", 200_000) + "1"),
		"nots":           output(strings.Repeat("!", 200_000) + "true"),
		"sums":           output(strings.Repeat("1+", 100_000) + "1"),
		"questions":      output(strings.Repeat("true?1:", 30_000) + "1"),
		"indices":        output("local.a" + strings.Repeat("[local.a]", 20_000)),
		"splats":         output("local.a" + strings.Repeat("[*]", 50_000)),
		"ifs":            output("\"" + strings.Repeat("%{if true}", 20_000) + "\""),
		"laughs":         laughs + "}\n" + output("local.l40"),
		"squares":        squares + "}\n" + output(`"${local.s40}"`),
		"exponent":       output("1e999999999"),
		"digits":         output(strings.Repeat("9", 100_000)),
		"loops":          output("[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : 1]]]"),
		"loop of texts":  output(`join("", [for a in range(1000) : join("", [for b in range(1000) : "` + strings.Repeat("x", 1000) + `"])])`),
		"products":       output("setproduct(range(1000), range(1000), range(1000))"),
		"width":          output(`format("%999999999d", 1)`),
		"width by parts": output(`format(join("", ["%", "999999999", "d"]), 1)`),
		"indent":         output(`indent(999999999, "a\nb")`),
		"replace":        output(`replace("` + strings.Repeat("a", 20_000) + `", "a", "` + strings.Repeat("b", 20_000) + `")`),
		"count":          "resource \"sluice_endpoint\" \"e\" {\n  count = 100000000\n  name = \"e\"\n}",
		"fraction":       "resource \"sluice_endpoint\" \"e\" {\n  count = 1e300\n  name = \"e\"\n}",
		"for_each":       "resource \"sluice_endpoint\" \"e\" {\n  for_each = toset([for a in range(1000) : tostring(a)])\n  name = \"e\"\n}",
		"many blocks":    strings.Repeat("locals {}\n", 20_000),
		"many resources": strings.Repeat("resource \"sluice_endpoint\" \"e\" {\n  count = 500\n  name = \"e\"\n}\n", 1) + manyCounted(),
		"large file":     "# " + strings.Repeat("x", largestFile),
		"not utf-8":      "# \xff\xfe\n",
		"nothing":        "",
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			_, ds := one(src)
			if name != "nothing" {
				require.Error(t, ds.Err())
			}
			require.Less(t, time.Since(started), 10*time.Second)
			var b bytes.Buffer
			require.NoError(t, ds.Render(&b))
			require.Less(t, b.Len(), 200_000, "what is said about it stays small")
		})
	}
}

func manyCounted() string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "resource \"sluice_endpoint\" \"e%d\" {\n  count = 500\n  name = \"e\"\n}\n", i)
	}
	return b.String()
}

func TestALongChainOfLocalsIsEvaluatedWithoutDepth(t *testing.T) {
	var b strings.Builder
	b.WriteString("locals {\n  l0 = 1\n")
	for i := range 1500 {
		fmt.Fprintf(&b, "  l%d = local.l%d\n", i+1, i)
	}
	b.WriteString("}\n" + output("local.l1500"))
	set, ds := one(b.String())
	clean(t, ds)
	require.Equal(t, "1", set.Outputs[0].JSON)
}

func TestFilesOfVariablesAreBoundedToo(t *testing.T) {
	for name, content := range map[string]string{
		"terraform.tfvars":      "x = " + strings.Repeat("[", 100_000),
		"terraform.tfvars.json": `{"x": ` + strings.Repeat("[", 100_000),
		"a.auto.tfvars.json":    `{"x": 1e999999999}`,
		"b.auto.tfvars":         "x = 1e999999999",
		"c.auto.tfvars":         "x {\n}",
	} {
		_, ds := LoadFiles([]File{{Name: "main.tf", Bytes: []byte("variable \"x\" {}")}, {Name: name, Bytes: []byte(content)}}, Options{})
		require.Error(t, ds.Err(), name)
	}
	_, ds := LoadFiles([]File{{Name: "main.tf", Bytes: []byte("variable \"x\" {\n type = list(string)\n}")}}, Options{Environ: []string{"TF_VAR_x=" + strings.Repeat("[", 100_000)}})
	require.Error(t, ds.Err())
}

func TestLinksDoNotLeadOutOfTheFolder(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	secretFile := filepath.Join(outside, "secret.tf")
	require.NoError(t, os.WriteFile(secretFile, []byte("locals {\n  hunter2 = oops\n}"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.tf"), []byte(chat), 0o600))
	require.NoError(t, os.Symlink("main.tf", filepath.Join(dir, "same.auto.tfvars")))
	_, ds := Load(dir, Options{})
	require.NotContains(t, fmt.Sprint(ds.Err()), "leads out", "a link inside the folder is followed")
	require.NoError(t, os.Remove(filepath.Join(dir, "same.auto.tfvars")))

	require.NoError(t, os.Symlink(secretFile, filepath.Join(dir, "other.tf")))
	_, ds = Load(dir, Options{})
	require.ErrorContains(t, ds.Err(), "leads out of the folder")
	require.NotContains(t, ds.Err().Error(), "hunter2")
}

func TestTheRendererIsNotFooledByTheSource(t *testing.T) {
	_, ds := one("output \"o\" {\n\tvalue = nope /* \x1b[2J \u202e evil */\n}")
	var b bytes.Buffer
	require.NoError(t, ds.Render(&b))
	require.NotContains(t, b.String(), "\x1b")
	require.NotContains(t, b.String(), "\u202e")
	require.Contains(t, b.String(), "| \t        ^^^^\n", "the carets stand under the word, tabs kept")
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(chat+rolloutHead+"canary = { steps = [{ traffic = 10 }, { traffic = 100 }] }\n}"), []byte("x = 1"))
	f.Add([]byte("variable \"x\" {\n  type = object({ a = optional(number, 1) })\n}\nlocals {\n  y = { for k, v in var.x : k => v }\n}\n"+output("local.y")), []byte(`x = { a = 2 }`))
	f.Add([]byte("resource \"sluice_endpoint\" \"e\" {\n  for_each = toset([\"a\"])\n  name = \"%{ if true }x${each.key}%{ endif }\"\n}\nmoved {\n  from = sluice_endpoint.a\n  to = sluice_endpoint.e[\"a\"]\n}"), []byte(""))
	f.Add([]byte("data \"sluice_x\" \"d\" {}\ncheck \"c\" {\n  assert {\n    condition = data.sluice_x.d.a[*].b\n  }\n}\n"+output("data.sluice_x.d[0].x")), []byte("= ["))
	folders, err := filepath.Glob("testdata/*/main.tf")
	require.NoError(f, err)
	for _, path := range folders {
		src, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(src, []byte("p95_budget = 25"))
	}
	f.Fuzz(func(t *testing.T, src, values []byte) {
		files := []File{{Name: "main.tf", Bytes: src}, {Name: "terraform.tfvars", Bytes: values}}
		set, ds := LoadFiles(files, Options{})
		again, same := LoadFiles(files, Options{})
		if fmt.Sprint(set.Order, ds) != fmt.Sprint(again.Order, same) {
			t.Fatalf("two answers for one input:\n%v\n%v", ds, same)
		}
		var b bytes.Buffer
		if err := ds.Render(&b); err != nil {
			t.Fatal(err)
		}
		place := map[Address]int{}
		for i, a := range set.Order {
			place[a] = i
		}
		for _, r := range set.Rollouts {
			for _, d := range r.DependsOn {
				if place[d] >= place[r.Address] {
					t.Fatalf("%s comes before %s", r.Address, d)
				}
			}
		}
		for _, d := range ds {
			if strings.HasPrefix(d.Summary, "This expression cannot be evaluated") {
				t.Fatalf("a panic was caught: %v", d)
			}
		}
	})
}

// What lies just within the bounds is evaluated, or refused, in bounded time and
// without running out of stack.
func TestTheBoundsThemselvesHold(t *testing.T) {
	level := strings.Repeat("1+", longestChain-20)
	deep := strings.Repeat(level+"(", deepest-10) + "1" + strings.Repeat(")", deepest-10)
	large := "locals {\n  l = \"" + strings.Repeat("x", 100_000) + "\"\n}\n"
	references := large + output("["+strings.Repeat("local.l,", 15_000)+"]")
	many := "variable \"x\" {\n  default = 1\n}\n" + output("["+strings.Repeat("missing.y,", 20_000)+"]")
	for name, src := range map[string]string{"deep": output(deep), "references": references, "missing": many} {
		started := time.Now()
		set, ds := one(src)
		if name == "deep" {
			clean(t, ds)
			require.True(t, set.Outputs[0].Known)
		} else {
			require.Error(t, ds.Err())
		}
		require.LessOrEqual(t, len(ds), mostDiagnostics)
		require.Less(t, time.Since(started), 20*time.Second, name)
	}
}

func BenchmarkLoad(b *testing.B) {
	var src strings.Builder
	for i := range 200 {
		src.WriteString(strings.NewReplacer(`"chat"`, fmt.Sprintf(`"chat%d"`, i), ".chat.", fmt.Sprintf(".chat%d.", i), `"a"`, fmt.Sprintf(`"a%d"`, i), `"b"`, fmt.Sprintf(`"b%d"`, i),
			".b.", fmt.Sprintf(".b%d.", i), `"r"`, fmt.Sprintf(`"r%d"`, i)).Replace(chat + rolloutHead + "canary = { steps = [{ traffic = 10 }, { traffic = 100 }] }\n}\n"))
	}
	for b.Loop() {
		if set, ds := one(src.String()); ds.HasErrors() || len(set.Rollouts) != 200 {
			b.Fatal(ds.Err())
		}
	}
}
