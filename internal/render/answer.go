package render

// Answer is a short Markdown comment: a sentence a paragraph, each of which may hold a
// text of others, and below them lines to copy. Either may be empty.
func Answer(sentences []string, lines string) string {
	p := &page{}
	for _, s := range sentences {
		p.para(prose(s))
	}
	if lines != "" {
		p.block("", lines)
	}
	return p.b.String()
}
