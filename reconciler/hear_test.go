package reconciler

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// underWay is a merged canary that rolls out, and whose pull request is known to be merged.
func underWay(t *testing.T) (*stage, *forgetest.World, *change) {
	t.Helper()
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Minute)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	w.passes(2*time.Minute, time.Minute)
	return w, f, c
}

// stumble makes passes of which some may fail.
func (w *stage) stumble(passes int) {
	w.t.Helper()
	for range passes {
		_ = w.pass()
		w.advance(time.Minute)
		require.NoError(w.t, w.r.ledger.renew(w.t.Context()))
	}
}

// An earlier comment that is edited is newer than the command that was said between. It must
// not hide the command while the look-up of who said it fails.
func TestACancelIsHeardAlsoWhenAnEarlierCommentWasEditedAfterIt(t *testing.T) {
	w, f, c := underWay(t)
	talk := f.Say(c.number, "ben", "p95 looks bad")
	w.advance(5 * time.Second)
	f.Say(c.number, "ann", "/sluice cancel prod/chat because p95 doubled")
	w.advance(5 * time.Second)
	f.Edit(c.number, talk, "p95 looks bad: 900 ms")
	f.Next(forgetest.CallRole, forgetest.Answer(502))
	w.stumble(6)
	require.Equal(t, engineclient.StateCanceled, w.all("chat")[0].State, w.show())
}

// The look-up of one person fails for as long as it likes: others are heard.
func TestAPersonWhoCannotBeLookedUpHoldsUpNobodyElse(t *testing.T) {
	w, f, c := underWay(t)
	w.r.followers[0].forge = &nobody{w.forges["models"], "ben"}
	f.Say(c.number, "ben", "/sluice help\n/sluice promote prod/chat")
	w.advance(5 * time.Second)
	f.Say(c.number, "ann", "/sluice cancel prod/chat because p95 doubled")
	w.stumble(6)
	require.Equal(t, engineclient.StateCanceled, w.all("chat")[0].State, w.show())
	require.Empty(t, answers(f, c.number), "a comment is heard as a whole: its help is not answered again and again")
}

// nobody is a forge that cannot tell the role of one user.
type nobody struct {
	forge.Forge
	user string
}

func (n *nobody) Role(ctx context.Context, user string) (forge.Role, error) {
	if user == n.user {
		return forge.None, context.DeadlineExceeded
	}
	return n.Forge.Role(ctx, user)
}

// A forge lists a comment only minutes after it was made, when later ones have been heard.
func TestACommandThatTheForgeListsLateIsHeard(t *testing.T) {
	for _, merged := range []bool{true, false} {
		w, f, c := underWay(t)
		number := c.number
		if !merged {
			number = w.propose(c.git, f, "other", map[string]string{"prod/main.tf": canaryHouse("chat", 20, 100)}).number
			require.NoError(t, w.pass())
		}
		late := &lateLister{Forge: w.forges["models"]}
		w.r.followers[0].forge = late
		late.hidden = f.Say(number, "olga", "/sluice suspend prod because of the audit")
		w.advance(5 * time.Second)
		f.Say(number, "ben", "/sluice help")
		w.stumble(3)
		require.Empty(t, w.stack("models", "prod").Suspended)
		late.hidden = 0
		w.stumble(3)
		require.NotEmpty(t, w.stack("models", "prod").Suspended, w.show())
	}
}

// lateLister is a forge that does not list a comment yet.
type lateLister struct {
	forge.Forge
	hidden int64
}

func (l *lateLister) Comments(ctx context.Context, number int, since time.Time) ([]forge.Comment, error) {
	all, err := l.Forge.Comments(ctx, number, since)
	var out []forge.Comment
	for _, c := range all {
		if c.ID != l.hidden {
			out = append(out, c)
		}
	}
	return out, err
}

// What is remembered of comments is bounded, and what is forgotten is never heard again.
func TestWhatIsRememberedOfCommentsIsBounded(t *testing.T) {
	r := &pullRecord{}
	for i := range mostObeyed + 20 {
		r.Obeyed = append(r.Obeyed, obeyed{int64(i), epoch.Add(time.Duration(i) * 100 * time.Millisecond)})
	}
	newest := r.Obeyed[len(r.Obeyed)-1].At
	r.heardUntil(newest)
	require.LessOrEqual(t, len(r.Obeyed), mostObeyed)
	require.False(t, r.Obeyed[0].At.Before(r.Since))
	require.True(t, r.hasObeyed(mostObeyed+19))
	r.heardUntil(newest.Add(time.Hour))
	require.Empty(t, r.Obeyed)
	require.Equal(t, newest.Add(time.Hour-lateListing).Truncate(time.Second), r.Since)
}
