package api

// InstanceType is a hardware type with its capacity by region.
type InstanceType struct {
	ID                string   `json:"id"`
	Name              string   `json:"name"`
	Description       string   `json:"description"`
	GPUType           string   `json:"gpuType"`
	GPUCount          int      `json:"gpuCount"`
	GPUMemoryGiB      int      `json:"gpuMemoryGib"`
	PriceCentsPerHour int      `json:"priceCentsPerHour"`
	Regions           []Region `json:"regions"`

	Sluice *InstanceExtra `json:"sluice,omitempty"`
}

// InstanceExtra is what only Sluice's engine tells about an InstanceType.
type InstanceExtra struct {
	Capacity *int `json:"capacity,omitempty"` // replicas that fit in all; absent for no limit
}

// Region is one place of an InstanceType; no headroom means that it is unknown.
type Region struct {
	Name     string    `json:"name"`
	Headroom *Headroom `json:"headroom,omitempty"`
}

// Headroom counts further replicas that fit: a capped, best-effort number.
type Headroom struct {
	Relation string `json:"relation"` // RELATION_EQ or RELATION_GTE
	Value    *int   `json:"value,omitempty"`
}

// Config is an immutable revision of how a model is served.
type Config struct {
	ID               string       `json:"id"` // cr_…
	ProjectID        string       `json:"projectId"`
	Name             string       `json:"name,omitempty"`
	ReferenceModel   string       `json:"referenceModel"`
	ReferenceModelID string       `json:"referenceModelId"`
	Selectors        []Selector   `json:"selectors"`
	Certifications   []string     `json:"certifications"`
	Sluice           *ConfigExtra `json:"sluice,omitempty"`
}

// ConfigExtra is what only Sluice's engine tells about a Config.
type ConfigExtra struct {
	Models []string `json:"models"` // all that it serves; "*" for any
}

// Selector is one key and value of a Config.
type Selector struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Key is an API key as an administrator sees it; Secret is sent once, at creation.
type Key struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Scopes    []string `json:"scopes"` // read, operate, admin
	ProjectID string   `json:"projectId"`
	CreatedAt Time     `json:"createdAt"`
	Secret    string   `json:"secret,omitempty"`
}

// CreateKey is the body of POST /sluice/keys.
type CreateKey struct {
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`
}
