package declaration

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Bounds on what is taken from a folder that anybody may have written.
const (
	largestFile     = 256 << 10 // bytes
	largestFolder   = 4 << 20   // bytes of all files
	mostFiles       = 500
	mostBlocks      = 2_000 // and instances of all blocks together
	mostInstances   = 500   // of one block by count or for_each
	deepest         = 60    // brackets, templates and blocks within each other
	longestChain    = 500   // operators in one expression
	longestNumber   = 60    // characters
	largestExponent = 400
	mostAlone       = 50 // evaluations to tell which of several ids is passed on
	mostDiagnostics = 100
	mostWork        = 8 << 20 // of one expression, see cost
	largestValue    = 1 << 18 // of one evaluated local or variable, as size counts
	widest          = 1000    // width in a format, or indent
)

// withinLimits refuses, before anything is parsed, what the parser or an evaluation
// would follow recursively too deep, and numbers whose digits would fill memory.
func withinLimits(report *reporter, name string, src []byte) bool {
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos) // its diagnostics come again with the parse
	levels := []level{{}}
	for _, t := range tokens {
		if why := count(&levels, t); why != "" {
			report.refuse(t.Range, "Too much in one place", why, "no rollout needs this; write it flatter")
			return false
		}
	}
	return true
}

// level counts what is within one pair of brackets.
type level struct {
	chain   int
	braces  bool // a new line ends an expression here
	control int  // %{ of a template
}

func count(levels *[]level, t hclsyntax.Token) string {
	top := &(*levels)[len(*levels)-1]
	switch t.Type {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp,
		hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateControl:
		top.chain++ // a chain of calls or indices is as deep as it is long
		*levels = append(*levels, level{braces: t.Type == hclsyntax.TokenOBrace})
		if t.Type == hclsyntax.TokenTemplateControl {
			top.control++
		}
		if len(*levels) > deepest {
			return fmt.Sprintf("Brackets, blocks and templates lie more than %d deep within each other.", deepest)
		}
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd,
		hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
		if len(*levels) > 1 {
			*levels = (*levels)[:len(*levels)-1]
		}
	case hclsyntax.TokenComma:
		top.chain = 0
	case hclsyntax.TokenNewline:
		if top.braces || len(*levels) == 1 {
			top.chain = 0
		}
	case hclsyntax.TokenNumberLit:
		if !plainNumber(string(t.Bytes)) {
			return fmt.Sprintf("A number has at most %d characters and an exponent of at most %d.", longestNumber, largestExponent)
		}
	case hclsyntax.TokenIdent, hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit, hclsyntax.TokenComment, hclsyntax.TokenEqual, hclsyntax.TokenEOF:
	default: // operators, dots, stars
		top.chain++
	}
	if top.chain > longestChain || top.control > longestChain/4 {
		return fmt.Sprintf("One expression has more than %d operators.", longestChain)
	}
	return ""
}

func plainNumber(s string) bool {
	if len(s) > longestNumber {
		return false
	}
	_, exponent, found := strings.Cut(strings.ToLower(s), "e")
	if !found {
		return true
	}
	n, err := strconv.Atoi(exponent)
	return err == nil && n <= largestExponent && n >= -largestExponent
}
