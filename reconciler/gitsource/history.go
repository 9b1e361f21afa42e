package gitsource

import (
	"container/heap"
	"context"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// walk visits each commit of the histories of tips once.
func walk(ctx context.Context, store storer.EncodedObjectStorer, tips []plumbing.Hash, visit func(plumbing.Hash) error) error {
	seen := map[plumbing.Hash]bool{}
	queue := slices.Clone(tips)
	for len(queue) > 0 {
		id := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(id); err != nil {
			return err
		}
		c, err := readCommit(store, id)
		if err != nil {
			return err
		}
		queue = append(queue, c.parents...)
	}
	return nil
}

// Sides of a commit in history: it is reachable from the new commit, the old, or both.
const (
	fromNew = 1 << iota
	fromOld
)

// paint tells which commits only the new side has, newest first, by walking both
// histories from their newest commits until nothing is left that only the new side
// reaches. Commits whose clocks went backwards may make it look further, not less.
type paint struct {
	store storer.EncodedObjectStorer
	sides map[plumbing.Hash]int
	queue commits
}

// since lists what "to" has and "from" has not. from must be in the store.
func since(ctx context.Context, store storer.EncodedObjectStorer, from, to plumbing.Hash, most int) (Log, error) {
	p := &paint{store: store, sides: map[plumbing.Hash]int{}}
	var mine []rawCommit
	if err := p.reach(to, fromNew); err != nil {
		return Log{}, err
	}
	if err := p.reach(from, fromOld); err != nil {
		return Log{}, err
	}
	for p.undecided() {
		if err := ctx.Err(); err != nil {
			return Log{}, err
		}
		c, ok := heap.Pop(&p.queue).(rawCommit)
		if !ok {
			break
		}
		if p.sides[c.id] == fromNew {
			mine = append(mine, c)
		}
		for _, parent := range c.parents {
			if err := p.reach(parent, p.sides[c.id]); err != nil {
				return Log{}, err
			}
		}
	}
	// What turned out to be on both sides after it was taken is none of the new ones.
	mine = slices.DeleteFunc(mine, func(c rawCommit) bool { return p.sides[c.id] != fromNew })
	log := listed(mine, most)
	log.Rewritten = p.sides[from]&fromNew == 0
	if log.Rewritten { // dates can lie: ask the history itself
		ancestor, err := isAncestor(ctx, store, from, to)
		if err != nil {
			return Log{}, err
		}
		log.Rewritten = !ancestor
	}
	return log, nil
}

// reach paints a commit, and queues it when that is new.
func (p *paint) reach(id plumbing.Hash, sides int) error {
	before := p.sides[id]
	if before|sides == before {
		return nil
	}
	p.sides[id] = before | sides
	c, err := readCommit(p.store, id)
	if err != nil {
		return err
	}
	heap.Push(&p.queue, c)
	return nil
}

func (p *paint) undecided() bool {
	for _, c := range p.queue {
		if p.sides[c.id] == fromNew {
			return true
		}
	}
	return false
}

// all lists the whole history of a commit.
func all(ctx context.Context, store storer.EncodedObjectStorer, to plumbing.Hash, most int) (Log, error) {
	var mine []rawCommit
	err := walk(ctx, store, []plumbing.Hash{to}, func(id plumbing.Hash) error {
		c, err := readCommit(store, id)
		mine = append(mine, c)
		return err
	})
	slices.SortStableFunc(mine, func(a, b rawCommit) int { return b.at.Compare(a.at) })
	return listed(mine, most), err
}

// listed keeps the newest of commits that are newest first, and turns them round.
func listed(mine []rawCommit, most int) Log {
	var log Log
	if most > 0 && len(mine) > most {
		mine, log.Cut = mine[:most], true
	}
	for _, c := range slices.Backward(mine) {
		log.Commits = append(log.Commits, c.commit())
	}
	return log
}

// commits is a heap, newest first.
type commits []rawCommit

func (c commits) Len() int           { return len(c) }
func (c commits) Less(i, j int) bool { return c[i].at.After(c[j].at) }
func (c commits) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *commits) Push(x any) {
	if one, ok := x.(rawCommit); ok {
		*c = append(*c, one)
	}
}
func (c *commits) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}
