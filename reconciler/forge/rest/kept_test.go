package rest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestKeptAnswersStayWithinTheirBytes(t *testing.T) {
	k := newKept(1000)
	for n := range 100 {
		k.put(fmt.Sprint(n%40), &stored{etag: fmt.Sprint(n), body: make([]byte, 90+n)})
		sum := 0
		for _, s := range k.lru.Values() {
			sum += len(s.body)
		}
		assert.Equal(t, sum, k.bytes)
		assert.LessOrEqual(t, k.bytes, 1000)
	}
	newest, ok := k.get("19")
	assert.True(t, ok)
	assert.Equal(t, "99", newest.etag)
	k.put("too large", &stored{body: make([]byte, 1001)})
	_, ok = k.get("too large")
	assert.False(t, ok)
	assert.NotZero(t, k.bytes, "what does not fit at all puts nobody out")
	for n := range 2 * mostKept {
		k.put(fmt.Sprint(n), &stored{})
	}
	assert.Equal(t, mostKept, k.lru.Len())
}
