// Package cli holds the commands of sluice. They are thin: parse, call one room,
// render. Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 the rollout is
// parked, 4 it was canceled.
package cli
