package forge_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// A forge that hangs while one call has the turn does not hold the next one for ever.
func TestWaitingForTheTurnAtAStickyCommentEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := forgetest.New(forgetest.Options{})
		number := w.OpenPullRequest(forgetest.Opening{})
		f := w.Forge()
		w.Next(forgetest.CallComments, forgetest.Hang())
		long, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := forge.Upsert(long, f, number, "<!-- m -->", "plan")
			done <- err
		}()
		synctest.Wait()
		short, cancelShort := context.WithTimeout(t.Context(), time.Second)
		defer cancelShort()
		_, err := forge.Upsert(short, f, number, "<!-- m -->", "plan")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		_, err = forge.Upsert(t.Context(), f, number, "<!-- m -->", "plan")
		require.NoError(t, err)
		assert.Len(t, w.Comments(number), 1)
	})
}

func TestAStickyCommentThatAForgeHasTrimmedIsNotEditedAgain(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	number := w.OpenPullRequest(forgetest.Opening{})
	c, err := forge.Upsert(t.Context(), w.Forge(), number, "<!-- m -->", "one\ntwo\n")
	require.NoError(t, err)
	w.Edit(number, c.ID, "<!-- m -->\r\none\r\ntwo")
	_, err = forge.Upsert(t.Context(), w.Forge(), number, "<!-- m -->", "one\ntwo\n")
	require.NoError(t, err)
	assert.Zero(t, w.Writes(forgetest.CallEditComment))
}

func TestARefusedOrLimitedStickyCommentIsNotLookedForAgain(t *testing.T) {
	w := forgetest.New(forgetest.Options{})
	number := w.OpenPullRequest(forgetest.Opening{})
	w.Next(forgetest.CallComment, forgetest.Answer(403), forgetest.Limit(429, time.Minute))
	for range 2 {
		_, err := forge.Upsert(t.Context(), w.Forge(), number, "<!-- m -->", "plan")
		require.Error(t, err)
	}
	assert.Equal(t, 2, w.Calls(forgetest.CallComments))
}
