package planning

import (
	"encoding/json"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

// configurationJSON is the folder as a policy may want to see it: which reference or
// constant stands behind each attribute.
type configurationJSON struct {
	ProviderConfig map[string]providerConfigJSON `json:"provider_config,omitempty"`
	RootModule     configuredModule              `json:"root_module"`
}

type providerConfigJSON struct {
	Name     string `json:"name"`
	FullName string `json:"full_name"`
}

type configuredModule struct {
	Resources []configuredResource `json:"resources,omitempty"`
}

type configuredResource struct {
	Address           string                    `json:"address"`
	Mode              string                    `json:"mode"`
	Type              string                    `json:"type"`
	Name              string                    `json:"name"`
	ProviderConfigKey string                    `json:"provider_config_key"`
	Expressions       map[string]expressionJSON `json:"expressions,omitempty"`
	SchemaVersion     int                       `json:"schema_version"`
	Count             *expressionJSON           `json:"count_expression,omitempty"`
	ForEach           *expressionJSON           `json:"for_each_expression,omitempty"`
}

type expressionJSON struct {
	Constant   json.RawMessage `json:"constant_value,omitempty"`
	References []string        `json:"references,omitempty"`
}

func (cs Changes) configurationJSON() configurationJSON {
	out := configurationJSON{ProviderConfig: map[string]providerConfigJSON{"sluice": {Name: "sluice", FullName: providerName}}}
	for _, w := range cs.Set.Written {
		r := configuredResource{
			Address: w.String(), Mode: "managed", Type: string(w.Kind), Name: w.Name, ProviderConfigKey: "sluice",
			SchemaVersion: schemaVersions[w.Kind], Expressions: map[string]expressionJSON{}, Count: expression(w.Count), ForEach: expression(w.ForEach),
		}
		for name, e := range w.Attributes {
			r.Expressions[name] = *expression(&e)
		}
		out.RootModule.Resources = append(out.RootModule.Resources, r)
	}
	byAddress(out.RootModule.Resources, func(r configuredResource) string { return r.Address })
	return out
}

func expression(e *declaration.Expression) *expressionJSON {
	if e == nil {
		return nil
	}
	return &expressionJSON{Constant: e.Constant, References: e.References}
}
