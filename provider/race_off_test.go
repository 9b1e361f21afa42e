//go:build !race

package provider

import "time"

const (
	patience   = 700 * time.Millisecond // of a client for one attempt; delays last longer
	together   = 12                     // stories played at once
	everyStory = 7                      // of these, one in so many is played without -faults.all
)
