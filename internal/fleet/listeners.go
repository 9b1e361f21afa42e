package fleet

import "sync"

// Listeners tells subscribers about changes. The zero value is ready to use.
type Listeners struct {
	mu   sync.Mutex
	next int
	list map[int]func(string)
	keys []int // in order of subscription, so that a deterministic world stays so
}

// Subscribe adds a listener. Cancel may be called twice.
func (l *Listeners) Subscribe(notify func(deployment string)) (cancel func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil {
		l.list = make(map[int]func(string))
	}
	key := l.next
	l.next++
	l.list[key] = notify
	l.keys = append(l.keys, key)
	return func() { l.drop(key) }
}

// drop removes one listener.
func (l *Listeners) drop(key int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.list, key)
	kept := make([]int, 0, len(l.list))
	for _, k := range l.keys {
		if _, ok := l.list[k]; ok {
			kept = append(kept, k)
		}
	}
	l.keys = kept
}

// Notify calls every listener for every deployment. The caller holds no lock, so
// that a listener may look at the fleet.
func (l *Listeners) Notify(deployments []string) {
	if len(deployments) == 0 {
		return
	}
	l.mu.Lock()
	calls := make([]func(string), 0, len(l.keys))
	for _, k := range l.keys {
		calls = append(calls, l.list[k])
	}
	l.mu.Unlock()
	for _, d := range deployments {
		for _, call := range calls {
			call(d)
		}
	}
}
