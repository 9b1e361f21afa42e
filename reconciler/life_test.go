package reconciler

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// life is one process of a reconciler. Whatever it does outside itself passes a boundary
// before and after: each commit to the journal, each write at the engine and at the
// forge, each notification. At one of them the process can be made to die, as by kill -9,
// or to freeze and go on later.
type life struct {
	w   *stage
	r   *Reconciler
	end int    // the boundary, from 1; 0 for none
	how ending // of the end

	mu     sync.Mutex
	passed []boundary
	dead   bool
	frozen chan struct{} // closed when it has frozen
	thaw   chan struct{} // closed by the test
	over   chan struct{} // closed when what it does now has ended
	writes int           // that took effect at the engine or the forge since it was thawed
	thawed bool
}

// boundary is the instant before or after something that is seen from outside.
type boundary struct {
	what string
	at   time.Time
}

// ending is what happens at a boundary.
type ending int

const (
	dies ending = iota
	freezes
	fails // the journal does not answer, once
)

// heardOf is what people want to be told.
var heardOf = []string{"rollout.parked", "rollout.system_paused", "rollout.completed", "rollout.canceled", "asked.*", "drift.seen", "run.finished"}

// newLife makes a process; nothing of it runs yet. Notifications go to hear.
func newLife(w *stage, end int, how ending, hear func(notify.Event)) *life {
	w.t.Helper()
	l := &life{w: w, end: end, how: how, frozen: make(chan struct{}), thaw: make(chan struct{})}
	parts := w.parts()
	parts.Engine = w.clientOver(l, w.key)
	parts.Journal = &livingJournal{w.journal, l}
	parts.Forges = map[string]forge.Forge{}
	for name, f := range w.forges {
		parts.Forges[name] = &livingForge{f, l}
	}
	r, err := New(w.config, parts)
	require.NoError(w.t, err)
	r.outbox = notify.NewOutbox(notify.Options{
		Journal: r.ledger, Write: r.ledger.write,
		Destinations: []notify.Destination{{Name: "people", Events: heardOf, Notifier: hearing(func(e notify.Event) {
			l.reach("notify " + e.Kind + " before")
			hear(e)
			l.reach("notify " + e.Kind + " after")
		})}},
	})
	l.r = r
	return l
}

// do lets the process do something until it returns, dies or freezes. alive is false for
// the latter two.
func (l *life) do(f func(*Reconciler) error) (err error, alive bool) {
	l.over = make(chan struct{})
	go func() {
		defer close(l.over)
		err = f(l.r)
		alive = !l.isDead()
	}()
	select {
	case <-l.over:
		return err, alive
	case <-l.frozen:
		return nil, false
	}
}

// resume lets a frozen process go on, to the end of what it was doing.
func (l *life) resume() {
	close(l.thaw)
	<-l.over
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// reach is called at each boundary, in the goroutine that passes it.
func (l *life) reach(what string) (failed bool) {
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		runtime.Goexit()
	}
	l.passed = append(l.passed, boundary{what, l.w.now})
	here := len(l.passed) == l.end
	l.dead = here && l.how == dies
	l.mu.Unlock()
	switch {
	case here && l.how == dies:
		runtime.Goexit()
	case here && l.how == fails:
		return true
	case here:
		close(l.frozen)
		<-l.thaw
		l.mu.Lock()
		l.thawed = true
		l.mu.Unlock()
	}
	return false
}

func (l *life) wrote() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.thawed {
		l.writes++
	}
}

// RoundTrip carries a request of this process to the engine.
func (l *life) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet || strings.Contains(req.URL.Path, "preview") {
		if l.isDead() {
			runtime.Goexit()
		}
		return l.w.RoundTrip(req)
	}
	what := "engine " + req.Method + " " + req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
	l.reach(what + " before")
	l.wrote()
	resp, err := l.w.RoundTrip(req)
	l.reach(what + " after")
	return resp, err
}

// livingJournal is the journal as one process sees it.
type livingJournal struct {
	journal.Journal
	life *life
}

func (j *livingJournal) Commit(ctx context.Context, f journal.Fence, b journal.Batch) error {
	if j.life.reach("commit before") {
		return journal.ErrUnavailable
	}
	if err := j.Journal.Commit(ctx, f, b); err != nil {
		return err
	}
	j.life.wrote()
	if j.life.reach("commit after") {
		return journal.ErrUnavailable
	}
	return nil
}

// livingForge is the forge as one process sees it.
type livingForge struct {
	forge.Forge
	life *life
}

func (f *livingForge) around(what string, write func() error) error {
	f.life.reach("forge " + what + " before")
	f.life.wrote()
	err := write()
	f.life.reach("forge " + what + " after")
	return err
}

func (f *livingForge) Comment(ctx context.Context, number int, body string) (c forge.Comment, err error) {
	err = f.around("comment", func() error {
		c, err = f.Forge.Comment(ctx, number, body)
		return err
	})
	return c, err
}

func (f *livingForge) EditComment(ctx context.Context, number int, id int64, body string) error {
	return f.around("edit", func() error { return f.Forge.EditComment(ctx, number, id, body) })
}

func (f *livingForge) React(ctx context.Context, number int, comment int64, sign forge.Sign) error {
	return f.around("react", func() error { return f.Forge.React(ctx, number, comment, sign) })
}

func (f *livingForge) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	return f.around("status", func() error { return f.Forge.SetStatus(ctx, commit, s) })
}

// hearing is a place that hears of events.
type hearing func(notify.Event)

func (h hearing) Notify(_ context.Context, e notify.Event) error {
	h(e)
	return nil
}
