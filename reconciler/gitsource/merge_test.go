package gitsource_test

import (
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource/gittest"
)

// spec is a commit without parents on a branch.
func spec(branch, text string) gittest.Spec {
	return gittest.Spec{Branch: branch, Parents: []string{}, Files: map[string]string{"a.hcl": text}}
}
