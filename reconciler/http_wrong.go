package reconciler

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

// astray answers what no route of the door takes: as an error of its own form, with the
// methods that the path has, or with the paths that there are.
func astray(routes *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			other := req.Clone(req.Context())
			other.Method = method
			if _, pattern := routes.Handler(other); pattern != "/" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) == 0 {
			refuse(w, http.StatusNotFound, fmt.Sprintf("there is nothing at %q; there are /healthz, /readyz, /metrics, /hooks/… and what is below /v1 (docs/reconcile.md)", clip(req.URL.Path, 200)))
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		refuse(w, http.StatusMethodNotAllowed, fmt.Sprintf("%q takes %s, and not %s", clip(req.URL.Path, 200), strings.Join(allowed, " and "), clip(req.Method, 20)))
	}
}

// asksOnly refuses a query that has what the call would ignore.
func asksOnly(req *http.Request, known []string) error {
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return errors.New("the query of the address cannot be read: write name=value, with & between them")
	}
	for name, values := range query {
		switch {
		case len(known) == 0:
			return fmt.Errorf("%q is no parameter: this call takes none", clip(name, 100))
		case !slices.Contains(known, name):
			return fmt.Errorf("%q is no parameter of this call; there are: %s", clip(name, 100), joined(known))
		case len(values) > 1:
			return fmt.Errorf("%s is given %d times", name, len(values))
		}
	}
	return nil
}

// readBody reads a request's JSON object. What is wrong with it is told in words for who
// has written it; a body that is not there is an empty one.
func readBody(w http.ResponseWriter, req *http.Request) (askBody, error) {
	var body askBody
	dec := json.NewDecoder(http.MaxBytesReader(w, req.Body, mostBody))
	dec.DisallowUnknownFields()
	err := dec.Decode(&body)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			return body, errors.New("the body has more behind its JSON object")
		}
		return body, nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var long *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		return body, nil
	case errors.As(err, &long):
		return body, fmt.Errorf("the body is longer than %d bytes", long.Limit)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return body, errors.New("the body ends before its JSON does")
	case errors.As(err, &syntax):
		return body, fmt.Errorf("the body is not JSON, from byte %d on", syntax.Offset)
	case errors.As(err, &kind) && kind.Field == "":
		return body, fmt.Errorf("the body is a JSON %s, and an object is asked for: {\"reason\": \"why\"}", kind.Value)
	case errors.As(err, &kind):
		return body, fmt.Errorf("%s of the body is a %s, and must be a text", kind.Field, kind.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return body, fmt.Errorf("%q is no field of the body; %s", clip(name, 100), orElse(declaration.Nearest(name, bodyFields()), "there are: "+joined(bodyFields())))
	}
	return body, errors.New("the body cannot be read")
}

// bodyFields are the fields that a body may have.
func bodyFields() []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[askBody]()) {
		out = append(out, f.Tag.Get("json"))
	}
	return out
}
