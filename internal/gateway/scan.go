package gateway

// stretch is a piece of a body, its end not included.
type stretch struct{ start, end int }

// fields are the top-level values of a body that routing looks at, each as it
// stands in the body. Of a field that is named twice the last counts, as it does
// for the model servers' decoders.
type fields struct {
	models                                         int // how often model is named
	model, cacheKey, user, messages, prompt, input stretch
}

// scan walks the members of a valid JSON document once, without allocating. It
// returns false if the document is not an object.
func (f *fields) scan(b []byte) bool {
	i := skipSpace(b, 0)
	if b[i] != '{' {
		return false
	}
	for i = skipSpace(b, i+1); b[i] != '}'; i = skipSpace(b, i) {
		if b[i] == ',' {
			i = skipSpace(b, i+1)
		}
		name := stretch{i, skipString(b, i)}
		i = skipSpace(b, skipSpace(b, name.end)+1) // over the colon
		value := stretch{i, skipValue(b, i)}
		f.note(b[name.start:name.end], value)
		i = value.end
	}
	return true
}

// note keeps the value if its name is one of ours. A name may be written with
// escapes, which a decoder would see through.
func (f *fields) note(quoted []byte, value stretch) {
	name := quoted[1 : len(quoted)-1]
	if hasEscape(name) {
		name = []byte(unquote(quoted))
	}
	switch string(name) {
	case "model":
		f.models++
		f.model = value
	case "prompt_cache_key":
		f.cacheKey = value
	case "user":
		f.user = value
	case "messages":
		f.messages = value
	case "prompt":
		f.prompt = value
	case "input":
		f.input = value
	}
}

func skipSpace(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r' {
		i++
	}
	return i
}

// skipString returns the end of the string that starts at i.
func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue returns the end of the value that starts at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			i++
			continue // a separator ends nothing: at depth 0 it is never reached
		default:
			i = skipScalar(b, i)
		}
		if depth == 0 {
			return i
		}
	}
}

// skipScalar returns the end of a number, true, false or null.
func skipScalar(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return i
		}
	}
	return i
}
