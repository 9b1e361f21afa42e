package cli_test

import (
	"path/filepath"
	"regexp"
	"testing"
)

// The configurations of examples/reconcile are taken as they stand; what is warned of is
// only that secrets are not on this machine.
func TestTheReconcilersExamplesAreTaken(t *testing.T) {
	s := shell{t, map[string]string{}}
	examples := filepath.Join("..", "..", "examples", "reconcile")
	for name, says := range map[string]string{"minimal.hcl": "1 repository, 1 stack", "sluice.hcl": "1 repository, 2 stacks"} {
		r := s.run("reconcile", "--config", filepath.Join(examples, name), "--check").exits(0, says)
		for _, m := range regexp.MustCompile(`(?m)^warning: (.*)`).FindAllStringSubmatch(r.errs, -1) {
			if !regexp.MustCompile(`^The (secret's file cannot be read|environment variable [A-Z_]+ is not set) here`).MatchString(m[1]) {
				t.Errorf("%s: %s", name, m[1])
			}
		}
	}
}
