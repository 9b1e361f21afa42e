package gitsource

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// hostile says what is wrong with the name of one tree entry, empty for nothing. Names
// that Git on some system would take for .git are refused too, although nothing is
// checked out here: whoever commits one means no good.
func hostile(name string) string {
	switch {
	case name == "":
		return "has an empty name"
	case name == "." || name == "..":
		return "has the name " + name + ", which leads out of its folder"
	case strings.ContainsAny(name, "/\\"):
		return "has a slash or backslash in its name"
	case !utf8.ValidString(name):
		return "has a name that is not UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "has a control character in its name"
	case strings.ContainsFunc(name, invisible):
		return "has an invisible or unknown character in its name"
	case gitFolder(name):
		return "has the name of Git's own folder"
	case len(name) > 255:
		return "has a name longer than 255 bytes"
	}
	return ""
}

// invisible are format characters (zero width, direction marks), blanks other than the
// plain one, and what this program's Unicode does not know.
func invisible(r rune) bool { return !unicode.IsPrint(r) }

// gitFolder tells .git in the spellings of systems that fold case, drop dots and
// spaces at the end, keep streams, or have short names.
func gitFolder(name string) bool {
	n, _, _ := strings.Cut(strings.ToLower(name), ":")
	n = strings.TrimRight(n, ". ")
	return n == ".git" || n == "git~1"
}
