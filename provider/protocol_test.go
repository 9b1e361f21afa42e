package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// toldEngine answers the reads of the API from what it is told, and the edits of a
// split. hosted makes it say only what the platform says.
type toldEngine struct {
	*httptest.Server
	hosted      bool
	endpoints   []api.Endpoint
	deployments map[string][]api.Deployment
	rollouts    map[string][]api.Rollout
	events      []api.Event
	hardware    []api.InstanceType
	preview     api.Preview

	mu    sync.Mutex
	agent string   // of the last call
	calls []string // method and path with query, without the project; whoami left out
}

func newToldEngine(t *testing.T) *toldEngine {
	t.Helper()
	e := &toldEngine{deployments: map[string][]api.Deployment{}, rollouts: map[string][]api.Rollout{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/whoami", func(w http.ResponseWriter, r *http.Request) {
		who := api.WhoAmI{ProjectID: "proj_1", ProjectSlug: "acme", Sluice: &api.WhoAmIExtra{Version: "1.2.3", Capabilities: []string{"keys", "spec-echo"}}}
		if e.hosted {
			who.Sluice = nil
		}
		told(w, http.StatusOK, who)
	})
	const project = "/v2/projects/proj_1"
	mux.HandleFunc("GET "+project+"/endpoints", func(w http.ResponseWriter, r *http.Request) { page(w, r, e.endpoints) })
	mux.HandleFunc("GET "+project+"/endpoints/{ep}", func(w http.ResponseWriter, r *http.Request) {
		one(w, e.endpoints, func(ep api.Endpoint) bool { return ep.ID == r.PathValue("ep") })
	})
	mux.HandleFunc("PATCH "+project+"/endpoints/{ep}", e.edit)
	mux.HandleFunc("GET "+project+"/endpoints/{ep}/deployments", func(w http.ResponseWriter, r *http.Request) { page(w, r, e.deployments[r.PathValue("ep")]) })
	mux.HandleFunc("GET "+project+"/endpoints/{ep}/deployments/{id}", func(w http.ResponseWriter, r *http.Request) {
		one(w, e.deployments[r.PathValue("ep")], func(d api.Deployment) bool { return d.ID == r.PathValue("id") })
	})
	mux.HandleFunc("GET "+project+"/endpoints/{ep}/rollouts", func(w http.ResponseWriter, r *http.Request) { page(w, r, e.rollouts[r.PathValue("ep")]) })
	mux.HandleFunc("GET "+project+"/endpoints/{ep}/rollouts/{id}", func(w http.ResponseWriter, r *http.Request) {
		one(w, e.rollouts[r.PathValue("ep")], func(x api.Rollout) bool { return x.ID == r.PathValue("id") })
	})
	mux.HandleFunc("POST "+project+"/endpoints/{ep}/rollouts/preview-defaults", func(w http.ResponseWriter, _ *http.Request) { told(w, http.StatusOK, e.preview) })
	mux.HandleFunc("GET "+project+"/endpoints/{ep}/events", func(w http.ResponseWriter, r *http.Request) { page(w, r, e.events) })
	mux.HandleFunc("GET /v2/public/inference-instance-types", func(w http.ResponseWriter, r *http.Request) { page(w, r, e.hardware) })
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		e.agent = r.UserAgent()
		e.mu.Unlock()
		if path := strings.TrimPrefix(r.URL.Path, project); r.URL.Path != "/v1/whoami" {
			if r.URL.RawQuery != "" {
				path += "?" + r.URL.RawQuery
			}
			e.mu.Lock()
			e.calls = append(e.calls, r.Method+" "+path)
			e.mu.Unlock()
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

// edit writes a split under its etag, which every write changes.
func (e *toldEngine) edit(w http.ResponseWriter, r *http.Request) {
	var in api.UpdateEndpoint
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refused(w, http.StatusBadRequest, api.CodeInvalidArgument, err.Error())
		return
	}
	for i := range e.endpoints {
		ep := &e.endpoints[i]
		if ep.ID != r.PathValue("ep") {
			continue
		}
		if in.ETag != ep.ETag {
			w.Header().Set("X-Should-Retry", "false")
			refused(w, http.StatusConflict, api.CodeAborted, "the etag is not the newest")
			return
		}
		n, _ := strconv.Atoi(ep.ETag)
		ep.ETag, ep.TrafficSplit = strconv.Itoa(n+1), *in.TrafficSplit
		told(w, http.StatusOK, *ep)
		return
	}
	refused(w, http.StatusNotFound, api.CodeNotFound, "no such endpoint")
}

// asked takes the calls since it was last called.
func (e *toldEngine) asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls := e.calls
	e.calls = nil
	return calls
}

func told(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refused(w http.ResponseWriter, status int, code, message string) {
	told(w, status, map[string]any{"message": message, "error": map[string]any{"message": message, "type": "invalid_request_error", "param": nil, "code": code}})
}

func page[T any](w http.ResponseWriter, r *http.Request, all []T) {
	from, _ := strconv.Atoi(r.URL.Query().Get("after"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if limit == 0 {
		limit = api.DefaultPageSize
	}
	out := api.Page[T]{Object: "list", Data: all[from:min(from+limit, len(all))]}
	if from+limit < len(all) {
		next := strconv.Itoa(from + limit)
		out.NextCursor = &next
	}
	told(w, http.StatusOK, out)
}

func one[T any](w http.ResponseWriter, all []T, is func(T) bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		told(w, http.StatusOK, all[i])
		return
	}
	refused(w, http.StatusNotFound, api.CodeNotFound, "no such thing")
}

// protocol is the provider as Terraform talks to it.
type protocol struct {
	tfprotov6.ProviderServer
	schema *tfprotov6.GetProviderSchemaResponse
	ids    map[string]*tfprotov6.ResourceIdentitySchema
}

func newProtocol(t *testing.T, e *toldEngine) *protocol {
	t.Helper()
	p := &protocol{ProviderServer: providerserver.NewProtocol6(New("test")())()}
	var err error
	p.schema, err = p.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	require.NoError(t, err)
	require.Empty(t, p.schema.Diagnostics)
	ids, err := p.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	require.NoError(t, err)
	p.ids = ids.IdentitySchemas
	if e != nil {
		got := p.configure(t, map[string]any{"engine_url": e.URL, "api_key": "secret-key-of-a-test"})
		require.Empty(t, got)
	}
	return p
}

func (p *protocol) configure(t *testing.T, settings map[string]any) []*tfprotov6.Diagnostic {
	t.Helper()
	got, err := p.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.11.4", Config: dynamic(t, p.schema.Provider.ValueType(), settings)})
	require.NoError(t, err)
	return got.Diagnostics
}

// dynamic is a value of a type from plain Go values; what is not named is null.
func dynamic(t *testing.T, typ tftypes.Type, v any) *tfprotov6.DynamicValue {
	t.Helper()
	d, err := tfprotov6.NewDynamicValue(typ, asTerraform(t, typ, v))
	require.NoError(t, err)
	return &d
}

func asTerraform(t *testing.T, typ tftypes.Type, v any) tftypes.Value {
	t.Helper()
	switch v := v.(type) {
	case nil:
		return tftypes.NewValue(typ, nil)
	case tftypes.Value:
		return v
	case map[string]any:
		out := map[string]tftypes.Value{}
		if o, ok := typ.(tftypes.Object); ok {
			for name, at := range o.AttributeTypes {
				out[name] = asTerraform(t, at, v[name])
			}
			for name := range v {
				require.Contains(t, o.AttributeTypes, name)
			}
			return tftypes.NewValue(typ, out)
		}
		for name, item := range v {
			out[name] = asTerraform(t, typ.(tftypes.Map).ElementType, item)
		}
		return tftypes.NewValue(typ, out)
	case []any:
		out := make([]tftypes.Value, 0, len(v))
		for _, item := range v {
			out = append(out, asTerraform(t, typ.(tftypes.List).ElementType, item))
		}
		return tftypes.NewValue(typ, out)
	}
	return tftypes.NewValue(typ, v)
}

// plain is a value as plain Go: maps, slices, strings, float64, bool and nil.
// What is not known is the string "(unknown)".
func plain(t *testing.T, typ tftypes.Type, d *tfprotov6.DynamicValue) any {
	t.Helper()
	if d == nil {
		return nil
	}
	v, err := d.Unmarshal(typ)
	require.NoError(t, err)
	return asPlain(t, v)
}

func asPlain(t *testing.T, v tftypes.Value) any {
	t.Helper()
	switch {
	case !v.IsKnown():
		return "(unknown)"
	case v.IsNull():
		return nil
	case v.Type().Is(tftypes.String):
		var s string
		require.NoError(t, v.As(&s))
		return s
	case v.Type().Is(tftypes.Bool):
		var b bool
		require.NoError(t, v.As(&b))
		return b
	case v.Type().Is(tftypes.Object{}), v.Type().Is(tftypes.Map{}):
		var m map[string]tftypes.Value
		require.NoError(t, v.As(&m))
		out := map[string]any{}
		for k, item := range m {
			out[k] = asPlain(t, item)
		}
		return out
	case v.Type().Is(tftypes.List{}), v.Type().Is(tftypes.Set{}), v.Type().Is(tftypes.Tuple{}):
		var items []tftypes.Value
		require.NoError(t, v.As(&items))
		out := []any{}
		for _, item := range items {
			out = append(out, asPlain(t, item))
		}
		return out
	}
	number := new(big.Float)
	require.NoError(t, v.As(number))
	f, _ := number.Float64()
	return f
}

// said is diagnostics as text: severity, attribute, summary, detail.
func said(diags []*tfprotov6.Diagnostic) string {
	var b strings.Builder
	for _, d := range diags {
		fmt.Fprintf(&b, "%s %s: %s: %s\n", d.Severity, d.Attribute, d.Summary, d.Detail)
	}
	return b.String()
}

// data reads a data source; the second result is what was said.
func (p *protocol) data(t *testing.T, name string, config map[string]any) (map[string]any, string) {
	t.Helper()
	typ := p.schema.DataSourceSchemas[name].ValueType()
	value := dynamic(t, typ, config)
	checked, err := p.ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: name, Config: value})
	require.NoError(t, err)
	if len(checked.Diagnostics) > 0 {
		return nil, said(checked.Diagnostics)
	}
	got, err := p.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: name, Config: value})
	require.NoError(t, err)
	state, _ := plain(t, typ, got.State).(map[string]any)
	return state, said(got.Diagnostics)
}

// imports a resource by id, or by identity when id is empty, and reads it as
// Terraform does; the identity is that after the read.
func (p *protocol) imports(t *testing.T, name, id string, identity map[string]any) (state, ids map[string]any, words string) {
	t.Helper()
	typ, idType := p.schema.ResourceSchemas[name].ValueType(), p.ids[name].ValueType()
	req := &tfprotov6.ImportResourceStateRequest{TypeName: name, ID: id}
	if id == "" {
		req.Identity = &tfprotov6.ResourceIdentityData{IdentityData: dynamic(t, idType, identity)}
	}
	got, err := p.ImportResourceState(t.Context(), req)
	require.NoError(t, err)
	if len(got.Diagnostics) > 0 {
		return nil, nil, said(got.Diagnostics)
	}
	read, err := p.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: name, CurrentState: got.ImportedResources[0].State, Private: got.ImportedResources[0].Private, CurrentIdentity: got.ImportedResources[0].Identity,
	})
	require.NoError(t, err)
	state, _ = plain(t, typ, read.NewState).(map[string]any)
	if read.NewIdentity != nil {
		ids, _ = plain(t, idType, read.NewIdentity.IdentityData).(map[string]any)
	}
	return state, ids, said(read.Diagnostics)
}

// listed is one result of a list resource.
type listed struct {
	name               string
	identity, resource map[string]any
	words              string
}

func (p *protocol) lists(t *testing.T, req tfprotov6.ListResourceRequest, config map[string]any) []listed {
	t.Helper()
	name := req.TypeName
	req.Config = dynamic(t, p.schema.ListResourceSchemas[name].ValueType(), config)
	server, ok := p.ProviderServer.(interface {
		ListResource(context.Context, *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error)
	})
	require.True(t, ok)
	got, err := server.ListResource(t.Context(), &req)
	require.NoError(t, err)
	var out []listed
	for r := range got.Results {
		l := listed{name: r.DisplayName, words: said(r.Diagnostics)}
		if r.Identity != nil {
			l.identity, _ = plain(t, p.ids[name].ValueType(), r.Identity.IdentityData).(map[string]any)
		}
		l.resource, _ = plain(t, p.schema.ResourceSchemas[name].ValueType(), r.Resource).(map[string]any)
		out = append(out, l)
	}
	return out
}

func unknownString() tftypes.Value { return tftypes.NewValue(tftypes.String, tftypes.UnknownValue) }
