package rest

import (
	"net/http"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// kept are answers that a forge may say are still right, up to a number and a size in
// all; what was longest not asked for goes first.
type kept struct {
	most  int // bytes
	mu    sync.Mutex
	bytes int
	lru   *simplelru.LRU[string, *stored]
}

// stored is one answer.
type stored struct {
	etag   string
	header http.Header
	body   []byte
}

func newKept(most int) *kept {
	k := &kept{most: most}
	k.lru, _ = simplelru.NewLRU(mostKept, func(_ string, s *stored) { k.bytes -= len(s.body) }) // fails on sizes below 1 only
	return k
}

func (k *kept) get(key string) (*stored, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lru.Get(key)
}

func (k *kept) put(key string, s *stored) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lru.Remove(key) // so that its bytes are counted off
	if len(s.body) > k.most {
		return
	}
	k.lru.Add(key, s)
	k.bytes += len(s.body)
	for k.bytes > k.most {
		k.lru.RemoveOldest()
	}
}

// answer is the stored one, as if it had been sent: the pages of a list are in its
// headers.
func (s *stored) answer(unchanged *http.Response) *http.Response {
	unchanged.StatusCode, unchanged.Status = http.StatusOK, "200 OK"
	unchanged.Header = s.header.Clone()
	return withBody(unchanged, s.body)
}
