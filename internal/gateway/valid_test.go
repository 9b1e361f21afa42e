package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// awkward are documents on which validators have differed.
var awkward = []string{
	``, ` `, `{}`, `[]`, `[[]]`, `{"a":[]}`, ` { } `, `{"a":{}}`, `[{},[]]`, `[1,]`, `[,1]`, `{,}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{1:1}`,
	`{"a" : 1 , "b" : [ 1 , 2 ] }`, `{"a":1}}`, `{"a":1]`, `[1}`, `[1`, `{"a":1`, `{"a"`, `{`, `[`, `]`, `}`, `,`, `:`, `1,2`, `1 2`, `{} {}`, "\t\r\n1\n", "\v1", "\uFEFF{}",
	`0`, `-0`, `-`, `01`, `-01`, `1.`, `.1`, `1.5`, `1.e5`, `1e`, `1e+`, `1E-5`, `1e5`, `0e0`, `0.0`, `00`, `+1`, `1x`, `0x1`, `NaN`, `Infinity`, `1e5.5`,
	`true`, `false`, `null`, `tru`, `truex`, `nul`, `nullnull`, `True`,
	`"`, `""`, `"a`, `"\`, `"\"`, `"\""`, `"\\"`, `"\/\b\f\n\r\t"`, `"\a"`, `"\u"`, `"\u12"`, `"\u123"`, `"\u1234"`, `"\uABCd"`, `"\ug123"`, `"\u123"x`, `"\ud800"`, "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\n\"", "\"\xff\"", `"é"`,
	`{"model":"a","messages":[{"role":"user","content":"hi \"you\""}],"n":9007199254740993,"t":0.7,"s":true,"x":null}`,
}

func TestAValidBodyIsWhatTheStandardLibraryTakes(t *testing.T) {
	for _, text := range awkward {
		require.Equal(t, json.Valid([]byte(text)), validJSON([]byte(text)), "%q", text)
	}
}

func TestNestingIsBoundedAsInTheStandardLibrary(t *testing.T) {
	for _, depth := range []int{1, 63, 64, 65, maxNesting - 1, maxNesting, maxNesting + 1, 200_000} {
		for _, text := range []string{
			strings.Repeat("[", depth) + strings.Repeat("]", depth),
			strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth),
			strings.Repeat("[", depth),
		} {
			require.Equal(t, json.Valid([]byte(text)), validJSON([]byte(text)), "depth %d of %.8s", depth, text)
		}
	}
}

// TestADamagedBodyIsJudgedAsByTheStandardLibrary changes, cuts and repeats pieces of
// documents, which meets more corners than random bytes do.
func TestADamagedBodyIsJudgedAsByTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(rapid.SampledFrom(awkward).Draw(t, "document"))
		for range rapid.IntRange(0, 4).Draw(t, "damages") {
			at := rapid.IntRange(0, len(b)).Draw(t, "at")
			piece := rapid.SampledFrom([]string{"", `"`, `\`, "{", "}", "[", "]", ",", ":", "0", "1", "-", ".", "e", " ", "null", `"a":1`, "\x01"}).Draw(t, "piece")
			cut := rapid.IntRange(at, min(len(b), at+2)).Draw(t, "cut")
			b = fmt.Appendf(nil, "%s%s%s", b[:at], piece, b[cut:])
		}
		if want := json.Valid(b); want != validJSON(b) {
			t.Fatalf("%q: the standard library says %v", b, want)
		}
	})
}

func FuzzValidJSON(f *testing.F) {
	for _, text := range awkward {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if want := json.Valid(b); want != validJSON(b) {
			t.Fatalf("%q: the standard library says %v", b, want)
		}
	})
}

// BenchmarkValidJSON compares a small and a large body with the standard library.
func BenchmarkValidJSON(b *testing.B) {
	for _, words := range []int{50, 20_000} {
		body := []byte(`{"model":"acme/chat","messages":[{"role":"user","content":"` + strings.Repeat("word ", words) + `"}],"temperature":0.7}`)
		for name, valid := range map[string]func([]byte) bool{"own": validJSON, "standard": json.Valid} {
			b.Run(fmt.Sprintf("%s/%dB", name, len(body)), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if !valid(body) {
						b.Fatal("not valid")
					}
				}
			})
		}
	}
}
