package journaltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

func crashed(t *testing.T, open Opener) {
	j := open(t)
	l, err := j.Acquire(t.Context(), holder("a"), start, ttl)
	require.NoError(t, err)
	late := journal.Intent{ID: "start/chat", Repository: "models", Stack: "prod", Address: "sluice_rollout.chat", Verb: "start_rollout", Detail: []byte(`{"id":"rol_1"}`), At: start.Add(time.Second)}
	early := journal.Intent{ID: "create/chat", Verb: "create_rollout", At: start}
	require.NoError(t, j.Commit(t.Context(), l.Fence, journal.Batch{Begin: []journal.Intent{late, early, {ID: "done", At: start}}}))
	require.NoError(t, j.Commit(t.Context(), l.Fence, journal.Batch{End: []journal.Outcome{{Intent: "done", Result: "done", At: start}}}))
	require.NoError(t, j.Close()) // and no outcome

	j = opened(t, open)
	got, err := j.Open(t.Context())
	require.NoError(t, err)
	early.Detail = []byte{}
	require.Equal(t, []journal.Intent{early, late}, got, "oldest first, as they were written")
	l, err = j.Acquire(t.Context(), holder("b"), start.Add(ttl), ttl)
	require.NoError(t, err)
	require.NoError(t, j.Commit(t.Context(), l.Fence, journal.Batch{End: []journal.Outcome{
		{Intent: early.ID, Result: "done", Detail: []byte(`{"id":"rol_1"}`), At: start.Add(ttl)}, {Intent: late.ID, Result: "void", At: start.Add(ttl)},
	}}))
	got, err = j.Open(t.Context())
	require.NoError(t, err)
	require.Empty(t, got)
}

func begunAgain(t *testing.T, open Opener) {
	j, l := leased(t, open)
	begin := func(detail string, at time.Duration) {
		require.NoError(t, j.Commit(t.Context(), l.Fence, journal.Batch{Begin: []journal.Intent{{ID: "i", Detail: []byte(detail), At: start.Add(at)}}}))
	}
	stands := func(detail string, at time.Duration) {
		got, err := j.Open(t.Context())
		require.NoError(t, err)
		require.Equal(t, []journal.Intent{{ID: "i", Detail: []byte(detail), At: start.Add(at)}}, got)
	}
	begin("1", 0)
	begin("2", 1)
	stands("2", 1)
	end := journal.Batch{End: []journal.Outcome{{Intent: "i", Result: "refused"}}}
	require.NoError(t, j.Commit(t.Context(), l.Fence, end))
	require.NoError(t, j.Commit(t.Context(), l.Fence, end), "an outcome may come twice")
	begin("3", 2)
	stands("3", 2)
}

func allOrNothing(t *testing.T, open Opener) {
	j, l := leased(t, open)
	require.NoError(t, j.Commit(t.Context(), l.Fence, put(one, "1")))
	before := everythingIn(t, j)
	var bad *journal.Bad
	require.ErrorAs(t, j.Commit(t.Context(), l.Fence, journal.Batch{
		Put: []journal.Record{{Key: one, Value: []byte("2")}, {Key: journal.Key{Kind: "other"}, Value: []byte("x")}}, Begin: []journal.Intent{{ID: "i"}},
		End: []journal.Outcome{{Intent: "never begun"}}, Entries: []journal.Entry{{Text: "told"}},
	}), &bad)
	require.ErrorContains(t, bad, "never begun")
	require.Equal(t, before, everythingIn(t, j))
}

func repeated(t *testing.T, open Opener) {
	j, l := leased(t, open)
	b := journal.Batch{
		Delete: []journal.Key{one}, Put: []journal.Record{{Key: one, Value: []byte("new")}},
		Begin: []journal.Intent{{ID: "i", At: start}}, End: []journal.Outcome{{Intent: "i", Result: "done", At: start}},
	}
	require.NoError(t, j.Commit(t.Context(), l.Fence, put(one, "old")))
	for range 2 {
		require.NoError(t, j.Commit(t.Context(), l.Fence, b))
	}
	require.Equal(t, everything{Records: []journal.Record{{Key: one, Value: []byte("new")}}}, everythingIn(t, j), "deleted, put, begun, ended")
	require.NoError(t, j.Commit(t.Context(), l.Fence, journal.Batch{Delete: []journal.Key{one, one}}))
	_, err := j.Get(t.Context(), one)
	require.ErrorIs(t, err, journal.ErrNone)
}

// odd are parts of keys that a joined string would mix up.
var odd = []string{"", "a", "a/b", "b", "a.b", "/", "..", "a%2Fb", "ä", "a\u0308", "日本", "🚢", " ", "a b", "'; --", "%", "_", "A", "\"", "\\", "\n", "?", "$1"}

func keys(t *testing.T, open Opener) {
	j, l := leased(t, open)
	var b journal.Batch
	for i, x := range odd {
		for n, y := range odd {
			b.Put = append(b.Put, journal.Record{Key: journal.Key{Kind: "k", Repository: x, Stack: y, Name: odd[(i+n)%len(odd)]}, Value: fmt.Appendf(nil, "%d %d", i, n)})
		}
	}
	require.NoError(t, j.Commit(t.Context(), l.Fence, b))
	for _, r := range b.Put {
		got, err := j.Get(t.Context(), r.Key)
		require.NoError(t, err, "%q", r.Key)
		require.Equal(t, string(r.Value), string(got), "%q", r.Key)
	}
	require.Len(t, all(t, j.List(t.Context(), journal.Key{})), len(b.Put))
	for _, x := range odd[1:] {
		found := all(t, j.List(t.Context(), journal.Key{Repository: x}))
		require.Len(t, found, len(odd), "%q", x)
	}
	require.NoError(t, j.Commit(t.Context(), l.Fence, journal.Batch{Delete: []journal.Key{b.Put[0].Key, b.Put[30].Key}}))
	require.Len(t, all(t, j.List(t.Context(), journal.Key{Kind: "k"})), len(b.Put)-2)
}

func texts(t *testing.T, open Opener) {
	j, l := leased(t, open)
	long := strings.Repeat("é", journal.LongestKey/2-1) // with the kind it is just not too long
	require.NoError(t, j.Commit(t.Context(), l.Fence, put(journal.Key{Kind: "k", Name: long}, "x")))
	var bad *journal.Bad
	for _, k := range []journal.Key{{}, {Name: "n"}, {Kind: "k", Name: "a\x00b"}, {Kind: "k", Name: "\xff"}, {Kind: "k", Name: long + "é"}} {
		require.ErrorAs(t, j.Commit(t.Context(), l.Fence, put(k, "x")), &bad, "%q", k)
		require.ErrorAs(t, j.Commit(t.Context(), l.Fence, journal.Batch{Delete: []journal.Key{k}}), &bad, "%q", k)
	}
	for _, id := range []string{"", "\x00", "\xff", long + "éé"} {
		require.ErrorAs(t, j.Commit(t.Context(), l.Fence, journal.Batch{Begin: []journal.Intent{{ID: id}}}), &bad, "%q", id)
	}
	require.NoError(t, j.Commit(t.Context(), l.Fence, journal.Batch{Entries: []journal.Entry{{At: start, Text: "a\x00b\xff'--", Commit: "\xfe", Detail: []byte("\x00\xff")}}}))
	got := all(t, j.History(t.Context(), journal.Query{}))
	require.Len(t, got, 1)
	require.Equal(t, journal.Entry{Seq: got[0].Seq, At: start, Text: "a\uFFFDb\uFFFD'--", Commit: "\uFFFD", Detail: []byte("\x00\xff")}, got[0])
}

func lists(t *testing.T, open Opener) {
	j, l := leased(t, open)
	var b journal.Batch
	for i := range 700 {
		b.Put = append(b.Put, journal.Record{Key: journal.Key{Kind: []string{"plan", "status"}[i%2], Repository: fmt.Sprintf("r%d", i%3), Stack: "s", Name: fmt.Sprintf("%04d", i)}, Value: []byte("v")})
	}
	require.NoError(t, j.Commit(t.Context(), l.Fence, b))
	whole := all(t, j.List(t.Context(), journal.Key{}))
	require.Len(t, whole, 700)
	require.True(t, slices.IsSortedFunc(whole, func(x, y journal.Record) int {
		return slices.Compare([]string{x.Key.Kind, x.Key.Repository, x.Key.Stack, x.Key.Name}, []string{y.Key.Kind, y.Key.Repository, y.Key.Stack, y.Key.Name})
	}))
	some := all(t, j.List(t.Context(), journal.Key{Kind: "plan", Repository: "r1"}))
	require.Equal(t, slices.DeleteFunc(slices.Clone(whole), func(r journal.Record) bool { return r.Key.Kind != "plan" || r.Key.Repository != "r1" }), some)
	require.Empty(t, all(t, j.List(t.Context(), journal.Key{Kind: "pla"})))
	for r, err := range j.List(t.Context(), journal.Key{}) {
		require.NoError(t, err)
		require.Equal(t, whole[0], r)
		break // a reader may stop
	}
}

func writesWhileReading(t *testing.T, open Opener) {
	j, l := leased(t, open)
	var b journal.Batch
	for i := range 600 {
		b.Put = append(b.Put, journal.Record{Key: journal.Key{Kind: "k", Name: fmt.Sprintf("%04d", i)}, Value: []byte("1")})
		b.Entries = append(b.Entries, journal.Entry{Text: "x"})
	}
	require.NoError(t, j.Commit(t.Context(), l.Fence, b))
	n := 0
	for r, err := range j.List(t.Context(), journal.Key{Kind: "k"}) {
		require.NoError(t, err)
		if n++; n%100 == 0 {
			require.NoError(t, j.Commit(t.Context(), l.Fence, journal.Batch{Delete: []journal.Key{r.Key}, Entries: []journal.Entry{{Text: "y"}}}))
		}
	}
	require.Equal(t, 600, n)
	n = 0
	for e, err := range j.History(t.Context(), journal.Query{}) {
		require.NoError(t, err)
		if n++; n%100 == 0 {
			require.NoError(t, j.Commit(t.Context(), l.Fence, put(one, e.Text)))
		}
	}
	require.Equal(t, 606, n)
}

func history(t *testing.T, open Opener) {
	j, l := leased(t, open)
	for at := 0; at < 700; at += 70 {
		var b journal.Batch
		for i := at; i < at+70; i++ {
			b.Entries = append(b.Entries, journal.Entry{At: start.Add(time.Duration(i) * time.Second), Repository: fmt.Sprintf("r%d", i%2), Stack: fmt.Sprintf("s%d", i%5), Endpoint: fmt.Sprintf("e%d", i%7), Commit: "c", Kind: fmt.Sprintf("k%d", i%3), Text: fmt.Sprint(i), Detail: []byte(`{}`)})
		}
		require.NoError(t, j.Commit(t.Context(), l.Fence, b))
	}
	whole := all(t, j.History(t.Context(), journal.Query{}))
	require.Len(t, whole, 700)
	for i, e := range whole {
		require.Equal(t, fmt.Sprint(699-i), e.Text)
	}
	for _, size := range []int{1, 99, 256, 300} {
		var paged []journal.Entry
		q := journal.Query{Most: size}
		for len(paged) < 700 {
			part := all(t, j.History(t.Context(), q))
			require.NotEmpty(t, part)
			require.LessOrEqual(t, len(part), size)
			paged = append(paged, part...)
			q.Before = part[len(part)-1].Seq
			if size == 1 && len(paged) == 20 {
				paged = whole // enough of these
			}
		}
		require.Equal(t, whole, paged, size)
	}
	for _, q := range []journal.Query{{Repository: "r1"}, {Stack: "s2"}, {Endpoint: "e3"}, {Kind: "k2"}, {Repository: "r0", Stack: "s1", Endpoint: "e1", Kind: "k1"}} {
		want := slices.DeleteFunc(slices.Clone(whole), func(e journal.Entry) bool {
			return q.Repository != "" && e.Repository != q.Repository || q.Stack != "" && e.Stack != q.Stack || q.Endpoint != "" && e.Endpoint != q.Endpoint || q.Kind != "" && e.Kind != q.Kind
		})
		require.NotEmpty(t, want)
		require.Equal(t, want, all(t, j.History(t.Context(), q)), "%+v", q)
	}
}

func prunes(t *testing.T, open Opener) {
	j, l := leased(t, open)
	var b journal.Batch
	for i := range 10 {
		at := start.Add(time.Duration(i) * time.Hour)
		id := fmt.Sprint("i", i)
		b.Entries = append(b.Entries, journal.Entry{At: at, Text: fmt.Sprint(i)})
		b.Begin = append(b.Begin, journal.Intent{ID: id, At: start})
		if i != 0 {
			b.End = append(b.End, journal.Outcome{Intent: id, Result: "done", At: at})
		}
	}
	require.NoError(t, j.Commit(t.Context(), l.Fence, b))
	before := start.Add(5 * time.Hour)
	for _, step := range []struct{ most, gone, left int }{{0, 0, 10}, {3, 3, 7}, {4, 4, 5}, {100, 2, 5}, {100, 0, 5}} {
		n, err := j.Prune(t.Context(), l.Fence, before, step.most)
		require.NoError(t, err)
		require.Equal(t, step.gone, n, "%+v", step)
		require.Len(t, all(t, j.History(t.Context(), journal.Query{})), step.left, "%+v", step)
	}
	got := all(t, j.History(t.Context(), journal.Query{}))
	require.Equal(t, "5", got[4].Text, "what is as old as the bound stays")
	open2, err := j.Open(t.Context())
	require.NoError(t, err)
	require.Len(t, open2, 1, "an open intent is never old enough")
	var bad *journal.Bad
	require.ErrorAs(t, j.Commit(t.Context(), l.Fence, journal.Batch{End: []journal.Outcome{{Intent: "i4"}}}), &bad, "it went")
	require.NoError(t, j.Commit(t.Context(), l.Fence, journal.Batch{End: []journal.Outcome{{Intent: "i5"}}, Entries: []journal.Entry{{Text: "next"}}}))
	again := all(t, j.History(t.Context(), journal.Query{Most: 1}))
	require.Greater(t, again[0].Seq, got[0].Seq, "a number is never given twice")
}

func restarts(t *testing.T, open Opener) {
	j := open(t)
	l, err := j.Acquire(t.Context(), holder("a"), start, ttl)
	require.NoError(t, err)
	value := make([]byte, 200_000)
	for i := range value {
		value[i] = byte(i * 7)
	}
	require.NoError(t, j.Commit(t.Context(), l.Fence, journal.Batch{
		Put:   []journal.Record{{Key: one, Value: value}, {Key: journal.Key{Kind: "empty"}}},
		Begin: []journal.Intent{{ID: "i", At: time.Time{}}, {ID: "j", At: start}}, Entries: []journal.Entry{{At: start, Text: "t"}},
	}))
	value[0]++ // the caller's bytes are its own
	before := everythingIn(t, j)
	require.NoError(t, j.Close())
	j = opened(t, open)
	require.Equal(t, before, everythingIn(t, j))
	got, err := j.Get(t.Context(), one)
	require.NoError(t, err)
	value[0]--
	require.Equal(t, value, got)
	got[0]++
	again, err := j.Get(t.Context(), one)
	require.NoError(t, err)
	require.Equal(t, value, again)
	require.NoError(t, j.Commit(t.Context(), l.Fence, put(one, "the same holder goes on")))
}

func concurrent(t *testing.T, open Opener) {
	j, l := leased(t, open)
	const writers, each = 6, 15
	var wg sync.WaitGroup
	errs := make(chan error, 2*writers*each)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				b := put(journal.Key{Kind: "k", Name: fmt.Sprint(w)}, fmt.Sprint(i))
				b.Entries = []journal.Entry{{Text: fmt.Sprint(w, " ", i)}}
				errs <- j.Commit(t.Context(), l.Fence, b)
				_, err := j.Get(t.Context(), b.Put[0].Key)
				errs <- err
			}
		})
	}
	go func() { wg.Wait(); close(errs) }()
	for err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, all(t, j.History(t.Context(), journal.Query{})), writers*each)
	for _, r := range all(t, j.List(t.Context(), journal.Key{Kind: "k"})) {
		require.Equal(t, fmt.Sprint(each-1), string(r.Value))
	}
}

func ended(t *testing.T, open Opener) {
	j, l := leased(t, open)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, j.Commit(ctx, l.Fence, put(one, "x")), context.Canceled)
	_, err := j.Get(t.Context(), one)
	require.ErrorIs(t, err, journal.ErrNone)
}
