package declaration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFunctionsGiveWhatTerraformGives(t *testing.T) {
	for expr, want := range map[string]string{
		`format("%s-%03d", "a", 7)`:                `"a-007"`,
		`format("in 2026: %s", "a")`:               `"in 2026: a"`,
		`join(",", ["a", "b"])`:                    `"a,b"`,
		`concat([1], [2, 3])`:                      `[1,2,3]`,
		`lookup({ a = 1 }, "a", 2)`:                `1`,
		`lookup({ a = 1 }, "b", 2)`:                `2`,
		`merge({ a = 1 }, { b = 2 })`:              `{"a":1,"b":2}`,
		`min(3, 1, 2)`:                             `1`,
		`toset(["b", "a", "b"])`:                   `["a","b"]`,
		`jsonencode({ a = [1, true] })`:            `"{\"a\":[1,true]}"`,
		`jsondecode("{\"a\":1}").a`:                `1`,
		`coalesce("", null, "x")`:                  `"x"`,
		`length("héllo")`:                          `5`,
		`length([1, 2])`:                           `2`,
		`length({ a = 1 })`:                        `1`,
		`one([])`:                                  `null`,
		`one(["a"])`:                               `"a"`,
		`sum([1, 2.5])`:                            `3.5`,
		`replace("a.b", ".", "-")`:                 `"a-b"`,
		`replace("a1b22", "/[0-9]+/", "n")`:        `"anbn"`,
		`alltrue([true, false])`:                   `false`,
		`anytrue([false, true])`:                   `true`,
		`startswith("abc", "ab")`:                  `true`,
		`try(local.nothing_there, "x")`:            ``,
		`can(tonumber("x"))`:                       `false`,
		`try(tonumber("x"), 4)`:                    `4`,
		`base64decode(base64encode("x"))`:          `"x"`,
		`[for i, v in ["a", "b"] : "${i}${v}"]`:    `["0a","1b"]`,
		`{ for v in ["a", "b"] : v => upper(v) }`:  `{"a":"A","b":"B"}`,
		`[for s in [{ t = 1 }, { t = 2 }] : s.t]`:  `[1,2]`,
		`[{ t = 1 }, { t = 2 }][*].t`:              `[1,2]`,
		`1 == 1 ? "y" : "n"`:                       `"y"`,
		`flatten([for a in [1, 2] : [a, a * 10]])`: `[1,10,2,20]`,
		`md5("a")`:                                 `"0cc175b9c0f1b6a831c399e269772661"`,
		`sha1("a")`:                                `"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"`,
		`sha256("")`:                               `"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`,
		`csvdecode("a,b\n1,2")[0].b`:               `"2"`,
		`basename("a/b.txt")`:                      `"b.txt"`,
		`dirname("a/b.txt")`:                       `"a"`,
		`index(["a", "b"], "b")`:                   `1`,
		`nonsensitive(sensitive("x"))`:             `"x"`,
		`urlencode("a b")`:                         `"a+b"`,
		`terraform.workspace`:                      `"default"`,
	} {
		set, ds := one("output \"o\" {\n value = " + expr + "\n}")
		if want == "" {
			require.Error(t, ds.Err(), expr)
			continue
		}
		require.NoError(t, ds.Err(), expr)
		require.Equal(t, want, set.Outputs[0].JSON, expr)
	}
}

func TestImpureFunctionsAreRefusedByName(t *testing.T) {
	for _, call := range []string{`file("x")`, `timestamp()`, `uuid()`, `templatefile("x", {})`} {
		_, ds := one("output \"o\" {\n value = " + call + "\n}")
		require.ErrorContains(t, ds.Err(), "Only Terraform can evaluate", call)
		require.Equal(t, 2, ds[0].Range.Start.Line)
	}
}
