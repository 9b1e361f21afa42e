package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

func splice(t require.TestingT, in, model string) string {
	c, err := parseCall([]byte(in))
	require.NoError(t, err)
	quoted, err := json.Marshal(model)
	require.NoError(t, err)
	pieces := c.spliced([]byte(in), quoted)
	return string(bytes.Join(pieces[:], nil))
}

func TestOnlyTheModelsValueIsReplaced(t *testing.T) {
	for in, want := range map[string]string{
		`{"seed":9007199254740993,"a":1.0,"model":"x"}`:         `{"seed":9007199254740993,"a":1.0,"model":"new"}`,
		"{ \"model\" :\t\"x\" , \"b\":[1,{\"model\":\"y\"}]}\n": "{ \"model\" :\t\"new\" , \"b\":[1,{\"model\":\"y\"}]}\n",
		`{"s":"\"model\":\"z\"","model":"a\/b","t":"\\"}`:       `{"s":"\"model\":\"z\"","model":"new","t":"\\"}`,
		`{"mod\u0065l":"x"}`: `{"mod\u0065l":"new"}`,
	} {
		assert.Equal(t, want, splice(t, in, "new"))
	}
	c, err := parseCall([]byte(`{"model":"a\/b"}`))
	require.NoError(t, err)
	assert.Equal(t, "a/b", c.model)
}

func TestABodyThatCannotBeRoutedIsRefused(t *testing.T) {
	for in, code := range map[string]string{
		``:                               "invalid_json",
		`{"model":"x"`:                   "invalid_json",
		`{"model":"x"}{}`:                "invalid_json",
		`[{"model":"x"}]`:                "invalid_json",
		`"model"`:                        "invalid_json",
		`{}`:                             "missing_required_parameter",
		`{"a":{"model":"x"}}`:            "missing_required_parameter",
		`{"model":7}`:                    "invalid_type",
		`{"model":null}`:                 "invalid_type",
		`{"model":"x","model":"y"}`:      "duplicate_parameter",
		`{"model":"x","m\u006fdel":"y"}`: "duplicate_parameter",
		strings.Repeat(`[`, 1<<20):       "invalid_json",
		`{"model":"x","a":` + strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000) + `}`: "invalid_json",
	} {
		_, err := parseCall([]byte(in))
		var refusal *refusalError
		require.ErrorAs(t, err, &refusal, "%.60s", in)
		assert.Equal(t, code, refusal.body.Code, "%.60s", in)
		assert.Equal(t, http.StatusBadRequest, refusal.status)
	}
}

func TestTheStickyKeyIsTheMostSpecificThatIsGiven(t *testing.T) {
	messages := `[{"role":"user","content":"hi"}]`
	for in, want := range map[string]string{
		`{"model":"m","user":"u","prompt_cache_key":"k","messages":` + messages + `}`: "k",
		`{"model":"m","user":" u ","messages":` + messages + `}`:                      "u",
		`{"model":"m","user":"\u0075","prompt_cache_key":""}`:                         "u",
		`{"model":"m","user":42}`:                                                     "42",
		`{"model":"m","messages":` + messages + `}`:                                   messages,
		`{"model":"m","prompt":"hello"}`:                                              `"hello"`,
		`{"model":"m","input":["a","b"]}`:                                             `["a","b"]`,
		`{"model":"m","input":[""],"messages":[{}]}`:                                  "",
		`{"model":"m"}`: "",
	} {
		c, err := parseCall([]byte(in))
		require.NoError(t, err)
		assert.Equal(t, want, string(c.key), in)
	}
}

func TestNB5TheLimitHoldsToTheByteOnEveryPath(t *testing.T) {
	const limit = 64 << 10
	g := start(t, Config{MaxBody: limit}, chat(1, serves("a", upstream(t, echo))))
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/embeddings"} {
		for n, status := range map[int]int{
			100: 200, 32<<10 - 1: 200, 32 << 10: 200, 32<<10 + 1: 200, limit: 200, limit + 1: 413, 4 * limit: 413,
		} {
			a := g.post(t.Context(), path, sized(n))
			require.NoError(t, a.err)
			assert.Equal(t, status, a.status, "%s %d", path, n)
			if status == http.StatusOK {
				assert.Len(t, gjson.Get(a.body, "got.prompt").Str, n-len(`{"model":"acme/chat","prompt":""}`))
			}
		}
	}
	// The same without a length in front.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v1/completions",
		&unsized{strings.NewReader(sized(limit + 1))})
	require.NoError(t, err)
	assert.Equal(t, http.StatusRequestEntityTooLarge, do(r).status)
}

// unsized hides a reader's length, so the client sends it in chunks.
type unsized struct{ r *strings.Reader }

func (u *unsized) Read(p []byte) (int, error) { return u.r.Read(p) }

// FuzzTheSpliceAgreesWithADecoder holds the scan against encoding/json and gjson.
func FuzzTheSpliceAgreesWithADecoder(f *testing.F) {
	for _, s := range []string{
		`{"model":"x"}`, `{"a":[{}],"model":"x\"y","user":"u"}`, `{"model":"x","model":"y"}`, `{"m\u006fdel":"x"}`,
		`{}`, `[]`, `{"model":1}`, ` {"user":{"model":"q"} , "model" : "\ud83d\ude00" } `, `{"":"","model":"x"}`,
		"{\"\xff\":1,\"model\":\"\xff\"}", `{"a":1e5,"b":true,"model":"x","c":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := parseCall(in)
		decoded := map[string]json.RawMessage{}
		if json.Unmarshal(in, &decoded) != nil {
			require.Error(t, err)
			return
		}
		var name string
		plain := json.Unmarshal(decoded["model"], &name) == nil && len(decoded["model"]) > 0 && decoded["model"][0] == '"'
		if err != nil {
			var refusal *refusalError
			require.ErrorAs(t, err, &refusal)
			require.True(t, !plain || refusal.body.Code == "duplicate_parameter", "%v for a good body", err)
			return
		}
		require.True(t, plain)
		require.Equal(t, name, c.model)
		pieces := c.spliced(in, []byte(`"new"`))
		out := bytes.Join(pieces[:], nil)
		require.Equal(t, "new", gjson.GetBytes(out, "model").String())
		again := map[string]json.RawMessage{}
		require.NoError(t, json.Unmarshal(out, &again))
		again["model"] = decoded["model"]
		require.Equal(t, decoded, again, "every other value is untouched")
	})
}

func BenchmarkParseAndSplice(b *testing.B) {
	for _, n := range []int{400, 4 << 10, 64 << 10} {
		in := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("word ", n/5) + `"}],"stream":true,"model":"acme/chat"}`)
		b.Run(fmt.Sprint(len(in)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c, err := parseCall(in)
				if err != nil {
					b.Fatal(err)
				}
				c.spliced(in, []byte(`"m"`))
			}
		})
	}
}
