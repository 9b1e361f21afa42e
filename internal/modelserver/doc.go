// Package modelserver is a model server without a model: it speaks the OpenAI
// HTTP API, answers deterministic text after a drawn latency, and can be told to
// start slowly, to fail a share of its answers and to close idle connections
// early. Demos and tests run it where a real deployment would run vLLM.
//
// Routes: POST /v1/chat/completions, /v1/completions and /v1/embeddings, GET
// /v1/models and GET /health. Every refusal has the OpenAI error form, the ones
// of unknown paths and of a server that still loads included.
package modelserver
