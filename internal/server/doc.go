// Package server is the HTTP face of the engine: API v2 at /, /v1 and /v2, health
// and metrics. It authenticates, decodes, calls one command, and encodes; it
// decides nothing.
package server
