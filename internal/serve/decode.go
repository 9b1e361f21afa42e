package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// FileError is a configuration file with several mistakes, FILE:LINE: what is wrong.
type FileError struct{ Problems []string }

func (e *FileError) Error() string { return strings.Join(e.Problems, "\n") }

// decodeFile reads one YAML document into f. Everything that does not fit is told,
// each with its file and line, in the file's words and not in Go's.
func decodeFile(name string, text []byte, f *File) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	err := dec.Decode(f)
	var several *yaml.TypeError
	switch {
	case errors.As(err, &several):
		all := &FileError{}
		for _, e := range several.Errors {
			all.Problems = append(all.Problems, inWords(name, e).Error())
		}
		return all
	case err != nil && !errors.Is(err, io.EOF):
		return inWords(name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: holds more than one YAML document; keep one", name)
	}
	return nil
}

// The decoder's sentences.
var (
	onLine      = regexp.MustCompile(`^line (\d+): (.*)$`)
	unknownName = regexp.MustCompile(`^field (.+) not found in type serve\.(\w+)$`)
	wrongKind   = regexp.MustCompile("^cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.+)$")
	given2      = regexp.MustCompile(`^mapping key "(.+)" already defined at line (\d+)$`)
)

// inWords turns one complaint of the decoder into FILE:LINE: what is wrong and what
// was probably meant.
func inWords(name, complaint string) error {
	m := onLine.FindStringSubmatch(complaint)
	if m == nil {
		return fmt.Errorf("%s: %s", name, complaint)
	}
	where, what := name+":"+m[1], m[2]
	if f := unknownName.FindStringSubmatch(what); f != nil {
		fields := settings(f[2])
		if near := nearest(f[1], fields); near != "" {
			return fmt.Errorf("%s: %q is not a setting here; did you mean %q?", where, f[1], near)
		}
		return fmt.Errorf("%s: %q is not a setting here; there are %s", where, f[1], strings.Join(fields, ", "))
	}
	if k := wrongKind.FindStringSubmatch(what); k != nil {
		if k[2] == "" {
			return fmt.Errorf("%s: %s stands where %s belongs", where, kinds[k[1]], wanted(k[3]))
		}
		return fmt.Errorf("%s: %q is not %s", where, k[2], wanted(k[3]))
	}
	if k := given2.FindStringSubmatch(what); k != nil {
		return fmt.Errorf("%s: %q stands twice, first on line %s", where, k[1], k[2])
	}
	return fmt.Errorf("%s: %s", where, what)
}

var kinds = map[string]string{"map": "a block of settings", "seq": "a list", "str": "a text", "int": "a number", "float": "a number", "bool": "true or false", "null": "nothing"}

// wanted names a Go type for a person.
func wanted(goType string) string {
	switch t := strings.TrimPrefix(goType, "*"); {
	case t == "int" || t == "int64":
		return "a whole number"
	case t == "float64":
		return "a number"
	case t == "bool":
		return "true or false"
	case t == "string":
		return "a text"
	case strings.HasPrefix(t, "[]"):
		return "a list"
	}
	return "a block of settings"
}

// settings lists the keys of one of the file's blocks, by the name of its Go type.
func settings(typeName string) []string {
	for _, v := range []any{File{}, ProjectFile{}, TimingsFile{}, FleetFile{}, HardwareFile{}, ConfigFile{}, ProbeFile{}, SimulatedFile{}, GatewayFile{}, MeterFile{}, EntitlementFile{}} {
		t := reflect.TypeOf(v)
		if t.Name() != typeName {
			continue
		}
		keys := make([]string, 0, t.NumField())
		for i := range t.NumField() {
			keys = append(keys, t.Field(i).Tag.Get("yaml"))
		}
		return keys
	}
	return nil
}

// nearest is the word that was probably meant, empty when none is near.
func nearest(word string, of []string) string {
	best, at := "", len(word)/3+2
	for _, w := range of {
		if d := distance(strings.ToLower(word), w); d < at {
			best, at = w, d
		}
	}
	return best
}

// distance counts the letters to add, drop, change, or swap with their neighbour, to
// make one word of another.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// placeholders are what a command may hold.
var placeholders = []string{"port", "model", "deployment", "replica"}

var placeholder = regexp.MustCompile(`\{([A-Za-z_]+)\}`)

// misspelt finds a placeholder that is one letter off: it would reach the model server
// as it stands. Braces that are like none are the command's own.
func misspelt(arg string) (got, meant string) {
	for _, m := range placeholder.FindAllStringSubmatch(arg, -1) {
		for _, p := range placeholders {
			if m[1] != p && distance(strings.ToLower(m[1]), p) <= 1 {
				return "{" + m[1] + "}", "{" + p + "}"
			}
		}
	}
	return "", ""
}

// fieldAt prints a path as a person writes it: configs[0].command[2].
func fieldAt(path []any) string {
	var b strings.Builder
	for _, p := range path {
		switch p := p.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(p) + "]")
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(p)
		}
	}
	return b.String()
}
