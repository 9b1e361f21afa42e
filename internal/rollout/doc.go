// Package rollout is the pure core of Sluice: the nouns of a rollout (Spec,
// Ladder, Step, Gate, Reading, Verdict, Condition, Rollout), the capacity
// arithmetic, the verdicts of the gates and the state machine.
//
// It holds no context, clock, logger, client, file or goroutine and imports
// nothing but the standard library. Time enters as an argument, effects leave as
// data: Decide takes a rollout, what was observed and an instant, and returns the
// next rollout and the effects that bring the world there. Every effect is
// level-triggered, so doing it twice is doing it once.
package rollout
