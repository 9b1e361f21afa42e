package engineclient

import (
	"net/http"

	"go.opentelemetry.io/otel/propagation"
)

// Traced is a transport whose requests carry the span of their context in the headers
// traceparent and tracestate of W3C Trace Context, so that an engine can tell which pass
// asked. A request without a span is sent as it is.
type Traced struct{ Next http.RoundTripper }

// RoundTrip sends one request.
func (t Traced) RoundTrip(req *http.Request) (*http.Response, error) {
	carried := http.Header{}
	propagation.TraceContext{}.Inject(req.Context(), propagation.HeaderCarrier(carried))
	if len(carried) == 0 {
		return t.Next.RoundTrip(req)
	}
	req = req.Clone(req.Context()) // a transport does not change what it was given
	for name, values := range carried {
		req.Header[name] = values
	}
	return t.Next.RoundTrip(req)
}
