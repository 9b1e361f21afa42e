//go:build race

package reconciler

// stride is which boundaries of a story are tried: a sample, since the race detector makes
// each ten times as slow. All of them are played without it, in a pass of their own.
const stride = 31

// underRace is why a test of one goroutine is not played here.
const underRace = "one goroutine plays it: it is played without the race detector"
