//go:build !race

package engine_test

// everyCall is the stride over the calls at which the power is broken.
const everyCall = 1
