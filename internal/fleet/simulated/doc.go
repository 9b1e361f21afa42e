// Package simulated is a fleet of virtual replicas: cold starts are instants,
// capacity is a number, and faults are injected by hand.
//
// It runs in two ways. Without Start there is no goroutine: the caller moves time
// by Step, which makes it a part of a deterministic world. After Start one
// goroutine calls Step when something is due, in real time or under
// testing/synctest. A Quiesce hook or a Backend brings goroutines of their own
// and belongs to the second way.
package simulated
