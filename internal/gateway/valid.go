package gateway

// maxNesting is how deep a document may nest, as for encoding/json.
const maxNesting = 10_000

// validJSON reports whether b is one JSON document. Its answer is that of
// encoding/json's Valid, at a fraction of the cost: a prompt of half a megabyte would
// otherwise cost a millisecond before it is routed. It does not recurse, so a deeply
// nested body costs no stack.
func validJSON(b []byte) bool {
	var near [64]byte
	open := near[:0] // the containers around i, outermost first, each by its end: } or ]
	i := spaceEnd(b, 0)
	for {
		ended := true
		switch {
		case i < len(b) && (b[i] == '{' || b[i] == '['):
			open = append(open, b[i]+2) // in ASCII both ends stand two after their beginnings
			if len(open) > maxNesting {
				return false
			}
			i = spaceEnd(b, i+1)
			ended = i < len(b) && b[i] == open[len(open)-1]
		default:
			i = scalarEnd(b, i)
		}
		if ended && i >= 0 {
			if i, open = closeAll(b, i, open); i >= 0 && len(open) == 0 {
				return i == len(b)
			}
		}
		// An entry begins at i, by a comma or as the first of its container.
		if i = entryValue(b, i, open); i < 0 {
			return false
		}
	}
}

// closeAll passes over the ends of containers at i, and over a comma after them, to
// where the next entry begins. With no container left it goes to the end of the space.
// It returns -1 for anything else.
func closeAll(b []byte, i int, open []byte) (int, []byte) {
	for {
		i = spaceEnd(b, i)
		switch {
		case len(open) == 0:
			return i, open
		case i == len(b):
			return -1, open
		case b[i] == open[len(open)-1]:
			open = open[:len(open)-1]
			i++
		case b[i] == ',':
			return spaceEnd(b, i+1), open
		default:
			return -1, open
		}
	}
}

// entryValue returns where the value of the entry at i begins, past its name in an
// object, or -1. It passes a -1 on.
func entryValue(b []byte, i int, open []byte) int {
	if i < 0 || open[len(open)-1] == ']' {
		return i
	}
	if i == len(b) || b[i] != '"' {
		return -1
	}
	if i = stringEnd(b, i); i < 0 {
		return -1
	}
	if i = spaceEnd(b, i); i == len(b) || b[i] != ':' {
		return -1
	}
	return spaceEnd(b, i+1)
}

// spaceEnd returns the first place at or after i that is no white space.
func spaceEnd(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// scalarEnd returns the end of the string, number or word at i, or -1.
func scalarEnd(b []byte, i int) int {
	if i == len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case 't':
		return wordEnd(b, i, "true")
	case 'f':
		return wordEnd(b, i, "false")
	case 'n':
		return wordEnd(b, i, "null")
	default:
		return numberEnd(b, i)
	}
}

func wordEnd(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// stringEnd returns the end of the string that begins at i, or -1. Bytes that are not
// UTF-8 are let through, as encoding/json does.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = escapeEnd(b, i) - 1; i < 0 {
				return -1
			}
		case c < ' ':
			return -1
		}
	}
	return -1
}

// escapeEnd returns the end of the escape at i, or -1.
func escapeEnd(b []byte, i int) int {
	if i+1 == len(b) {
		return -1
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if len(b)-i < 6 {
			return -1
		}
		for _, c := range b[i+2 : i+6] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return -1
			}
		}
		return i + 6
	default:
		return -1
	}
}

// numberEnd returns the end of the number at i, or -1.
func numberEnd(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	whole := digitsEnd(b, i)
	if whole == i || (b[i] == '0' && whole > i+1) {
		return -1
	}
	i = whole
	if i < len(b) && b[i] == '.' {
		fraction := digitsEnd(b, i+1)
		if fraction == i+1 {
			return -1
		}
		i = fraction
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		exponent := digitsEnd(b, i)
		if exponent == i {
			return -1
		}
		i = exponent
	}
	return i
}

func digitsEnd(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}
