// Package fleettest is the conformance suite of the fleet drivers. A driver that
// passes it can stand behind the engine.
package fleettest
