package gateway

import (
	"net"
	"net/http"
	"strings"
)

// The headers by which a client can attribute an answer.
const (
	HeaderEndpoint     = "X-Sluice-Endpoint"      // endpoint id
	HeaderDeployment   = "X-Sluice-Deployment"    // that answered
	HeaderReplica      = "X-Sluice-Replica"       // that answered
	HeaderGeneration   = "X-Sluice-Generation"    // of the route that decided
	HeaderFallbackFrom = "X-Sluice-Fallback-From" // deployment that was chosen but had no replica left
)

const ownPrefix = "X-Sluice-"

// hopByHop are the headers that concern one connection only.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// withheld are the request headers that are the gateway's business: credentials,
// and what describes the body as it came.
var withheld = map[string]bool{
	"Authorization": true, "Api-Key": true, "X-Api-Key": true, "Cookie": true,
	"Content-Length": true, "Host": true, "Expect": true, "X-Forwarded-For": true,
}

// named lists the headers that a Connection header declares hop-by-hop.
func named(h http.Header) map[string]bool {
	var names map[string]bool
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				if names == nil {
					names = map[string]bool{}
				}
				names[http.CanonicalHeaderKey(name)] = true
			}
		}
	}
	return names
}

// appendRequestHeaders writes those of the client's headers that go on.
func appendRequestHeaders(b []byte, r *http.Request) []byte {
	dropped := named(r.Header)
	for name, values := range r.Header {
		if hopByHop[name] || withheld[name] || dropped[name] || strings.HasPrefix(name, ownPrefix) {
			continue
		}
		for _, v := range values {
			b = appendHeader(b, name, v)
		}
	}
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return b
	}
	before := strings.Join(r.Header["X-Forwarded-For"], ", ")
	if before != "" {
		before += ", "
	}
	return appendHeader(b, "X-Forwarded-For", before+client)
}

func appendHeader(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
}

// copyResponseHeaders takes over what the replica said to the client.
func copyResponseHeaders(to, from http.Header) {
	dropped := named(from)
	for name, values := range from {
		if !hopByHop[name] && !dropped[name] && !strings.HasPrefix(name, ownPrefix) {
			to[name] = values
		}
	}
}
