//go:build race

package engine_test

// everyCall leaves calls out under the race detector, which makes the store some ten
// times slower; the plain run breaks every one.
const everyCall = 5
