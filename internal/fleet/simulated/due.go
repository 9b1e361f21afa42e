package simulated

import (
	"container/heap"
	"time"
)

// due says when a replica's transition comes. A replica that has come to wait for
// something else leaves its old ones behind, which are dropped when they come up.
type due struct {
	at time.Time
	v  *virtual
}

// dues is a heap by instant; of equal instants the older replica's is first, so that
// two runs agree.
type dues []due

// await has a replica wait for a phase's end.
func (f *Fleet) await(v *virtual, p phase, at time.Time) {
	v.phase, v.due = p, at
	heap.Push(&f.dues, due{at, v})
}

func (d dues) Len() int { return len(d) }
func (d dues) Less(i, j int) bool {
	if d[i].at.Equal(d[j].at) {
		return d[i].v.id < d[j].v.id
	}
	return d[i].at.Before(d[j].at)
}
func (d dues) Swap(i, j int) { d[i], d[j] = d[j], d[i] }

// Push adds a due at the end, for package heap.
func (d *dues) Push(x any) {
	next, _ := x.(due) // nothing else is put in
	*d = append(*d, next)
}

// Pop takes the last off, for package heap.
func (d *dues) Pop() any {
	old := *d
	last := old[len(old)-1]
	old[len(old)-1] = due{}
	*d = old[:len(old)-1]
	return last
}
