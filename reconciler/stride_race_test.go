//go:build race

package reconciler

// stride is which boundaries of a story are tried: every seventh, since the race detector
// makes each ten times as slow.
const stride = 7
