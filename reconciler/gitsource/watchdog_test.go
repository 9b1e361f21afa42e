package gitsource

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A call that ignores its deadline is left behind and counted; with too many of them
// no new one begins, and when they end the remote goes on.
func TestCallsThatIgnoreTheirDeadlineAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := &watchdog{remote: "https://example.com/a.git", most: 2}
		gate := make(chan struct{})
		deaf := func(context.Context) (int, error) { <-gate; return 1, nil }
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			began := time.Now()
			_, err := watched(ctx, dog, "listing", deaf)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Minute, time.Since(began), "exactly at the deadline")
			require.ErrorContains(t, err, "listing of https://example.com/a.git did not end in time")
			cancel()
		}
		require.Equal(t, 2, Abandoned())
		_, err := watched(t.Context(), dog, "listing", deaf)
		stuck := &Stuck{}
		require.ErrorAs(t, err, &stuck)
		require.ErrorContains(t, err, "2 calls have not ended long after their deadline")
		close(gate)
		synctest.Wait()
		require.Zero(t, Abandoned())
		v, err := watched(t.Context(), dog, "listing", deaf)
		require.NoError(t, err)
		require.Equal(t, 1, v)
	})
}

func TestPanicOfALibraryIsAnError(t *testing.T) {
	dog := &watchdog{remote: "r", most: 1}
	_, err := watched(t.Context(), dog, "reading", func(context.Context) (int, error) { panic("index out of range") })
	require.ErrorContains(t, err, "reading failed inside: index out of range")
}

func TestCallAfterItsDeadlineDoesNotBegin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := watched(ctx, &watchdog{most: 1}, "listing", func(context.Context) (int, error) { return 0, errors.New("it began") })
	require.ErrorIs(t, err, context.Canceled)
}

func TestCallsToOneHostAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := NewHosts(2)
		began := time.Now()
		for range 6 {
			require.NoError(t, hosts.wait(t.Context(), "a.example.com"))
		}
		require.Equal(t, 2*time.Second, time.Since(began), "two at once, then two a second")
		require.NoError(t, hosts.wait(t.Context(), "b.example.com"))
		require.Equal(t, 2*time.Second, time.Since(began), "another host has its own")

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := hosts.wait(ctx, "a.example.com")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "a.example.com may have 2 calls a second")
		require.Equal(t, 2*time.Second, time.Since(began), "what cannot be in time is told at once")

		hosts.pause("b.example.com", time.Now().Add(time.Minute))
		hosts.pause("b.example.com", time.Now().Add(time.Second)) // a shorter one changes nothing
		limited := &Limited{}
		require.ErrorAs(t, hosts.wait(t.Context(), "b.example.com"), &limited)
		time.Sleep(time.Minute)
		require.NoError(t, hosts.wait(t.Context(), "b.example.com"))
	})
}

func TestErrorsWithoutSecretsAndControlCharacters(t *testing.T) {
	var v vault
	v.keep("hunter2")
	v.keep("abc") // too short to hide
	cause := errors.New("server says hunter2 \x1b[2J\nabc \xff")
	err := v.clean(cause)
	require.Equal(t, `server says REDACTED \u001b[2J\u000aabc \xff`, err.Error())
	require.ErrorIs(t, err, cause)
	plainly := errors.New("nothing to hide")
	require.Equal(t, plainly, v.clean(plainly))
	require.NoError(t, v.clean(nil))
}
