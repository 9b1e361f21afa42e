// Package engine carries out the commands of the API and runs rollouts: it turns
// the effects that the core decides into calls on four ports: Store, Fleet, Router
// and Meter.
//
// Commands (create, start, pause …) only write facts. One runner decides and
// acts: it stores a decision with its events in one write, then does the effects,
// then decides again on what it observes. Every timer is a stored instant, so a
// crash anywhere is mended by deciding again.
package engine
