//go:build !race

package rehearsal

// slowBuild says that the race detector is in this build: a world has one goroutine, and
// a sample of them is enough for it.
const slowBuild = false
