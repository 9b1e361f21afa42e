package declaration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"
	"github.com/zclconf/go-cty/cty"
)

// CompareSchemas holds the schemas of the provider against what is known here. Who calls
// it stands outside of this package, since the provider plans with it.
func CompareSchemas(t *testing.T, schemas map[string]*tfprotov6.Schema) {
	t.Helper()
	for _, kind := range []Kind{EndpointKind, DeploymentKind, RolloutKind} {
		s, ok := schemas[string(kind)]
		require.True(t, ok, "the provider has no %s", kind)
		require.Empty(t, s.Block.BlockTypes, "%s has nested blocks now", kind)
		compare(t, string(kind), s.Block.Attributes, kinds[kind])
	}
	for name := range schemas {
		_, ok := kinds[Kind(name)]
		require.True(t, ok || slices.Contains(terraformAlone, name), "the provider has %s, which is neither read here nor left to Terraform", name)
	}
}

func compare(t *testing.T, at string, theirs []*tfprotov6.SchemaAttribute, ours []attribute) {
	t.Helper()
	seen := map[string]bool{}
	for _, a := range theirs {
		seen[a.Name] = true
		path := at + "." + a.Name
		known, ok := find(ours, a.Name)
		if !ok {
			t.Errorf("the provider has %s, which is not known here", path)
			continue
		}
		// A default makes an attribute optional and computed in the schema.
		require.Equal(t, a.Required, known.need == required, "%s is required", path)
		require.Equal(t, a.Computed && !a.Optional, known.need == computed, "%s is given by the engine", path)
		if a.Optional {
			require.Equal(t, a.Computed, known.need == optionalComputed || known.fallback != cty.NilVal, "%s is filled in when left out", path)
		}
		if known.need == computed {
			continue
		}
		if a.NestedType != nil {
			compareNested(t, path, a.NestedType, known.form)
			continue
		}
		require.True(t, a.Type.Is(typeOf(known.form)), "%s has the type %s, here it is %s", path, a.Type, known.form.cty().FriendlyName())
	}
	for _, a := range ours {
		if !seen[a.name] {
			t.Errorf("%s.%s is read here, but the provider does not have it", at, a.name)
		}
	}
}

func compareNested(t *testing.T, path string, theirs *tfprotov6.SchemaObject, ours form) {
	t.Helper()
	switch theirs.Nesting {
	case tfprotov6.SchemaObjectNestingModeSingle:
		require.Equal(t, object, ours.of, path)
		compare(t, path, theirs.Attributes, ours.fields)
	case tfprotov6.SchemaObjectNestingModeList:
		require.Equal(t, list, ours.of, path)
		compare(t, path, theirs.Attributes, ours.elem.fields)
	default:
		t.Errorf("%s has nesting %s, which is not read here", path, fmt.Sprint(theirs.Nesting))
	}
}

func typeOf(f form) tftypes.Type {
	switch f.cty() {
	case cty.Number:
		return tftypes.Number
	case cty.Bool:
		return tftypes.Bool
	}
	return tftypes.String
}
