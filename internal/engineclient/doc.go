// Package engineclient talks to an engine's v2 API, ours or the hosted platform's.
//
// One small interface, Doer, carries a request to an answer; what cuts across all
// calls (one attempt's timeout, retries, typed errors) is a decorator around it.
// Refusals are *api.Error, an engine that cannot be reached is *Unreachable, and a
// wait that ended early is *Interrupted with the last state that was seen.
package engineclient
