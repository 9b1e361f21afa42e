//go:build race

package provider

import "time"

// Under the race detector a call takes many times as long: fewer stories, one or two at
// a time, with more patience.
const (
	patience   = 2 * time.Second
	together   = 2
	everyStory = 23
)
