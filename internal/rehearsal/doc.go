// Package rehearsal is a deterministic world for the real engine: the real core,
// commands, runner, route follower and store code, on a virtual clock. Only the
// outermost ports are virtual: replicas (package fleet/simulated), routers, the meter,
// and the power. It is worked in one goroutine by an engine.Stepper, so that one script
// always plays to one transcript.
//
// A Script is text (testdata/scenarios/README.md tells the format): what stands, what
// happens and when. Draw makes a random one from a seed, with faults of every port,
// people at every control, edits of bounds, clocks that jump and crashes at outward
// calls. Play plays one. While it plays, a watch checks after every event what must
// never be (the guarantees of the design, section 4), from what the ports saw and by
// arithmetic of its own; after the script's line "mend" it also demands that the
// rollout ends, with the split that its record says, and no lock left. Shrink drops
// lines from a script that fails until each one left is needed.
//
// What it does not do: it sends no requests, so the ninth guarantee (every accepted
// request is answered) is the gateway's tests' to prove; here it is only seen that
// traffic is never moved to a side without ready replicas. It has one endpoint and one
// rollout at a time, one engine at a time, and SQLite in memory, whose loss by power
// failure is not modelled: what was committed stays. A router adaptor takes a route as
// a whole or refuses it; its copies converge within the propagation wait. Whose key may
// break the glass is the server's to check.
//
// A Plan is a user's own rollout with what is known of the world. NewForecast plays it
// once up to its end or its first park, with traffic drawn request by request from the
// sides' latency models; NewOutlook plays many seeds; Rehearse makes the Report that
// sluice rehearse prints. The same watch looks on.
package rehearsal
