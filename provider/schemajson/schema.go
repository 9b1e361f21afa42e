package main

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// The types below are the JSON of terraform providers schema.

type document struct {
	Format    string             `json:"format_version"`
	Providers map[string]schemas `json:"provider_schemas"`
}

type schemas struct {
	Provider      *schema              `json:"provider,omitempty"`
	Resources     map[string]*schema   `json:"resource_schemas,omitempty"`
	DataSources   map[string]*schema   `json:"data_source_schemas,omitempty"`
	Ephemeral     map[string]*schema   `json:"ephemeral_resource_schemas,omitempty"`
	ListResources map[string]*schema   `json:"list_resource_schemas,omitempty"`
	Actions       map[string]*schema   `json:"action_schemas,omitempty"`
	Functions     map[string]*function `json:"functions,omitempty"`
	Identities    map[string]*identity `json:"resource_identity_schemas,omitempty"`
}

type schema struct {
	Version int64  `json:"version"`
	Block   *block `json:"block"`
}

type block struct {
	Attributes      map[string]*attribute   `json:"attributes,omitempty"`
	BlockTypes      map[string]*nestedBlock `json:"block_types,omitempty"`
	Description     string                  `json:"description,omitempty"`
	DescriptionKind string                  `json:"description_kind,omitempty"`
	Deprecated      bool                    `json:"deprecated,omitempty"`
}

type nestedBlock struct {
	Mode  string `json:"nesting_mode"`
	Block *block `json:"block"`
	Least int64  `json:"min_items,omitempty"`
	Most  int64  `json:"max_items,omitempty"`
}

type attribute struct {
	Type            json.RawMessage `json:"type,omitempty"`
	Nested          *nested         `json:"nested_type,omitempty"`
	Description     string          `json:"description,omitempty"`
	DescriptionKind string          `json:"description_kind,omitempty"`
	Deprecated      bool            `json:"deprecated,omitempty"`
	Required        bool            `json:"required,omitempty"`
	Optional        bool            `json:"optional,omitempty"`
	Computed        bool            `json:"computed,omitempty"`
	Sensitive       bool            `json:"sensitive,omitempty"`
	WriteOnly       bool            `json:"write_only,omitempty"`
}

type nested struct {
	Attributes map[string]*attribute `json:"attributes"`
	Mode       string                `json:"nesting_mode"`
}

type identity struct {
	Version    int64                         `json:"version"`
	Attributes map[string]*identityAttribute `json:"attributes"`
}

type identityAttribute struct {
	Type        json.RawMessage `json:"type"`
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required_for_import,omitempty"`
	Optional    bool            `json:"optional_for_import,omitempty"`
}

type function struct {
	Description string          `json:"description,omitempty"`
	Summary     string          `json:"summary,omitempty"`
	Deprecation string          `json:"deprecation_message,omitempty"`
	Return      json.RawMessage `json:"return_type"`
	Parameters  []*parameter    `json:"parameters,omitempty"`
	Variadic    *parameter      `json:"variadic_parameter,omitempty"`
}

type parameter struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Nullable    bool            `json:"is_nullable,omitempty"`
	Type        json.RawMessage `json:"type"`
}

func schemasOf(in *tfprotov6.GetProviderSchemaResponse, identities *tfprotov6.GetResourceIdentitySchemasResponse) schemas {
	out := schemas{
		Provider: schemaOf(in.Provider), Resources: each(in.ResourceSchemas, schemaOf), DataSources: each(in.DataSourceSchemas, schemaOf),
		Ephemeral: each(in.EphemeralResourceSchemas, schemaOf), ListResources: each(in.ListResourceSchemas, schemaOf),
		Functions: each(in.Functions, functionOf), Identities: each(identities.IdentitySchemas, identityOf),
	}
	out.Actions = each(in.ActionSchemas, func(a *tfprotov6.ActionSchema) *schema { return schemaOf(a.Schema) })
	return out
}

// each converts the values of a map.
func each[A, B any](in map[string]A, convert func(A) B) map[string]B {
	out := map[string]B{}
	for name, v := range in {
		out[name] = convert(v)
	}
	return out
}

func schemaOf(in *tfprotov6.Schema) *schema {
	if in == nil {
		return nil
	}
	return &schema{Version: in.Version, Block: blockOf(in.Block)}
}

func blockOf(in *tfprotov6.SchemaBlock) *block {
	out := &block{Attributes: attributesOf(in.Attributes), Description: in.Description, DescriptionKind: kindOf(in.DescriptionKind), Deprecated: in.Deprecated}
	for _, b := range in.BlockTypes {
		if out.BlockTypes == nil {
			out.BlockTypes = map[string]*nestedBlock{}
		}
		out.BlockTypes[b.TypeName] = &nestedBlock{Mode: lower(b.Nesting.String()), Block: blockOf(b.Block), Least: b.MinItems, Most: b.MaxItems}
	}
	return out
}

func attributesOf(in []*tfprotov6.SchemaAttribute) map[string]*attribute {
	out := map[string]*attribute{}
	for _, a := range in {
		converted := &attribute{
			Description: a.Description, DescriptionKind: kindOf(a.DescriptionKind), Deprecated: a.Deprecated,
			Required: a.Required, Optional: a.Optional, Computed: a.Computed, Sensitive: a.Sensitive, WriteOnly: a.WriteOnly,
		}
		if a.NestedType != nil {
			converted.Nested = &nested{Attributes: attributesOf(a.NestedType.Attributes), Mode: lower(a.NestedType.Nesting.String())}
		} else {
			converted.Type = typeOf(a.Type)
		}
		out[a.Name] = converted
	}
	return out
}

func functionOf(in *tfprotov6.Function) *function {
	out := &function{Description: in.Description, Summary: in.Summary, Deprecation: in.DeprecationMessage, Return: typeOf(in.Return.Type)}
	for _, p := range in.Parameters {
		out.Parameters = append(out.Parameters, parameterOf(p))
	}
	if in.VariadicParameter != nil {
		out.Variadic = parameterOf(in.VariadicParameter)
	}
	return out
}

func parameterOf(in *tfprotov6.FunctionParameter) *parameter {
	return &parameter{Name: in.Name, Description: in.Description, Nullable: in.AllowNullValue, Type: typeOf(in.Type)}
}

func identityOf(in *tfprotov6.ResourceIdentitySchema) *identity {
	out := &identity{Version: in.Version, Attributes: map[string]*identityAttribute{}}
	for _, a := range in.IdentityAttributes {
		out.Attributes[a.Name] = &identityAttribute{Type: typeOf(a.Type), Description: a.Description, Required: a.RequiredForImport, Optional: a.OptionalForImport}
	}
	return out
}

// typeOf is a type in the JSON of cty: "string", ["list","number"].
func typeOf(in tftypes.Type) json.RawMessage {
	//nolint:staticcheck // the method is marked as one for the protocol, whose JSON of types is this one
	raw, err := in.MarshalJSON()
	if err != nil {
		panic(err) // the framework has no type that the protocol cannot carry
	}
	return raw
}

func kindOf(k tfprotov6.StringKind) string {
	if k == tfprotov6.StringKindMarkdown {
		return "markdown"
	}
	return "plain"
}

func lower(mode string) string { return strings.ToLower(mode) }
