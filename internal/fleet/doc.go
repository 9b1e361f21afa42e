// Package fleet says what runs replicas. Fleet is the port that the engine uses;
// the packages simulated and process are its drivers, fleettest the conformance
// suite that both pass.
//
// The drivers share one pure bookkeeping, the Roster: which deployments are
// wanted at which count, which replica holds which place and GPU, and who goes
// first when there are too many. A driver tells it what happened and carries out
// the orders that it plans.
package fleet
