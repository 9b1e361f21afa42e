// Package serve is the composition root of "sluice serve": it reads the engine's
// configuration, chooses store, fleet and meter, and starts and stops everything
// in order. It is the only room that knows all adaptors.
package serve
