// Package wire converts between the v2 wire types and the core's nouns, in both
// directions and nothing else. The server uses it to take specs and tell rollouts;
// doors use it to plan with the same core. It looks at nothing live.
package wire
