// Package meter measures what the gateway routes: windowed readings per
// deployment, exact to merge, cheap enough for the request path.
//
// # What counts
//
// A request is in flight from the choice of its side ([Meter.Begin]) to the last
// byte of its answer or the moment it is given up ([Flight.End]). It counts in
// the slot in which it ends and under the generation under which it was routed,
// so that a query with MinGeneration never sees a request of an earlier split,
// however long its stream ran.
//
// One code path measures every deployment; source and target of a rollout
// differ by a name and by nothing else.
//
//   - router_latency: milliseconds from side choice to last byte, over every
//     answered request, server errors included (a fast reject is an answer).
//   - router_error_rate: server errors ÷ answered requests, 0 to 1.
//   - inflight_requests: ∫ requests in flight dt ÷ ∫ ready replicas dt, an
//     integral and not a sampled gauge.
//
// A request that its client gave up is in neither numerator nor denominator of
// the error rate and not in the latency: it says nothing about the model. It
// was in flight, though, and counts there.
//
// # Windows
//
// Time is cut into slots of equal length (default 5 s), aligned to the Unix
// epoch. A query reads the slots that lie wholly inside [From, To): the window
// is aligned inward, so the part that is read is shorter than what was asked by
// less than one slot at each end, and never a moment longer.
//
// Percentiles are nearest-rank over a log-linear sketch ([Sketch]) whose
// relative error is at most 1/128; averages and rates are exact.
//
// # Restarts
//
// [Meter.Export] hands out closed slots for a store, [Meter.Import] takes them
// back after a restart. What no process watched is known: a reading whose window
// holds more unwatched time than the tolerance is not Complete.
package meter
