package provider

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dsschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/schemas")

// The JSON schemas of what a plan shows are made from the provider's own schema, so
// that they cannot say anything else. make docs writes them.
func TestJSONSchemasOfAPlanAreThoseOfTheProvider(t *testing.T) {
	var preview datasource.SchemaResponse
	(&previewDataSource{}).Schema(t.Context(), datasource.SchemaRequest{}, &preview)
	rollout := resourceSchema(t, &rolloutResource{})
	for _, c := range []struct {
		file, title, text string
		shape             map[string]any
	}{
		{
			"rollout.schema.json", "A sluice_rollout in the JSON of a plan",
			"What a plan tells of a rollout: change.after of a resource change of type sluice_rollout, in the output of terraform show -json. Attributes that are not known yet are absent there, and true in after_unknown. Those that the configuration gives are not described here.",
			objectOf(pick(rollout.Attributes, "summary", "spec_digest", "facts", "journey", "findings", "drift"), "summary", "facts", "journey", "findings"),
		},
		{
			"rollout_preview.schema.json", "A sluice_rollout_preview in the JSON of a plan",
			"What was live when a plan was made: values of a data source of type sluice_rollout_preview in prior_state, in the output of terraform show -json.",
			objectOf(computed(preview.Schema.Attributes), slices.Sorted(maps.Keys(computed(preview.Schema.Attributes)))...),
		},
	} {
		c.shape["$schema"], c.shape["title"], c.shape["description"] = "https://json-schema.org/draft/2020-12/schema", c.title, c.text
		var b bytes.Buffer
		to := json.NewEncoder(&b)
		to.SetEscapeHTML(false)
		to.SetIndent("", "  ")
		require.NoError(t, to.Encode(c.shape))
		path := filepath.Join("..", "docs", "schemas", c.file)
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
			require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
		}
		stands, err := os.ReadFile(path)
		require.NoError(t, err, "run make docs")
		require.Equal(t, b.String(), string(stands), "run make docs and commit docs/schemas")
	}
}

func pick[A any](all map[string]A, names ...string) map[string]A {
	out := map[string]A{}
	for _, name := range names {
		out[name] = all[name]
	}
	return out
}

// computed are the attributes that no configuration gives.
func computed(all map[string]dsschema.Attribute) map[string]dsschema.Attribute {
	out := map[string]dsschema.Attribute{}
	for name, a := range all {
		if a.IsComputed() && !a.IsOptional() {
			out[name] = a
		}
	}
	return out
}

// described is an attribute of either kind of schema.
type describedAttribute interface {
	GetMarkdownDescription() string
	GetType() attr.Type
}

func objectOf[A describedAttribute](attributes map[string]A, required ...string) map[string]any {
	properties := map[string]any{}
	for name, a := range attributes {
		p := shapeOf(a)
		if text := a.GetMarkdownDescription(); text != "" {
			p["description"] = text
		}
		properties[name] = p
	}
	if v, ok := properties["schema_version"].(map[string]any); ok {
		delete(v, "type")
		v["const"] = planSchemaVersion
	}
	if required == nil {
		required = slices.Sorted(maps.Keys(attributes))
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

func shapeOf(a describedAttribute) map[string]any {
	switch n := a.(type) {
	case schema.SingleNestedAttribute:
		return orNull(objectOf(n.Attributes))
	case dsschema.SingleNestedAttribute:
		return orNull(objectOf(n.Attributes))
	case schema.ListNestedAttribute:
		return orNull(map[string]any{"type": "array", "items": objectOf(n.NestedObject.Attributes)})
	case dsschema.ListNestedAttribute:
		return orNull(map[string]any{"type": "array", "items": objectOf(n.NestedObject.Attributes)})
	}
	return shapeOfType(a.GetType())
}

func shapeOfType(t attr.Type) map[string]any {
	switch t := t.(type) {
	case types.ObjectType:
		properties := map[string]any{}
		for name, inner := range t.AttrTypes {
			properties[name] = shapeOfType(inner)
		}
		if _, ok := properties["schema_version"]; ok {
			properties["schema_version"] = map[string]any{"const": planSchemaVersion}
		}
		return orNull(map[string]any{"type": "object", "properties": properties, "required": slices.Sorted(maps.Keys(properties))})
	case types.ListType:
		return orNull(map[string]any{"type": "array", "items": shapeOfType(t.ElemType)})
	}
	names := map[attr.Type]string{types.StringType: "string", types.BoolType: "boolean", types.Int64Type: "integer", types.Float64Type: "number"}
	return orNull(map[string]any{"type": names[t]})
}

// orNull lets null stand too: what is not known to the engine is null.
func orNull(shape map[string]any) map[string]any {
	shape["type"] = []any{shape["type"], "null"}
	return shape
}
