package declaration

import "github.com/hashicorp/hcl/v2/hclsyntax"

// Parse reads HCL that is no declaration, such as a configuration file, within the same
// bounds and with the same diagnostics. The body is nil when there is an error.
func Parse(f File) (*hclsyntax.Body, Diagnostics) {
	report := &reporter{}
	if len(admit(report, []File{f})) == 0 {
		return nil, report.finish(map[string][]byte{f.Name: f.Bytes})
	}
	body := parse(report, f)
	return body, report.finish(map[string][]byte{f.Name: f.Bytes})
}

// LargestFile is how many bytes of one file are read at most.
const LargestFile = largestFile

// Placed sorts diagnostics by their places, drops those that come twice or are too many,
// and gives each the line of its source.
func (ds Diagnostics) Placed(sources map[string][]byte) Diagnostics {
	report := &reporter{}
	for _, d := range ds {
		if len(report.found) < mostDiagnostics {
			report.found = append(report.found, d)
		}
	}
	return report.finish(sources)
}

// Nearest is a hint with the name that differs least from a wrong one, or with all of a
// few; empty when neither helps.
func Nearest(name string, known []string) string { return nearest(name, known) }
