package notify

import (
	"strings"
	"unicode"
)

// inert makes text of others harmless on a terminal and in a log.
func inert(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029':
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// quiet makes text of others harmless in a chat as well: it mentions nobody and links
// nowhere. What a chat would act on gets a character without width in its midst.
func quiet(s string) string {
	const nothing = "\u200b"
	return strings.NewReplacer(
		"@", "@"+nothing, "://", ":"+nothing+"//", "](", "]"+nothing+"(", "www.", "www"+nothing+".", "mailto:", "mailto"+nothing+":",
		"&", "&amp;", "<", "&lt;", ">", "&gt;",
	).Replace(inert(s))
}

// cut is at most so many characters of a text.
func cut(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most-1]) + "…"
}
