//go:build !race

package reconciler

// stride is which boundaries of a story are tried: each.
const stride = 1

// underRace is empty: all is played.
const underRace = ""
