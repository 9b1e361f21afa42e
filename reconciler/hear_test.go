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

// twoStacks is a pull request that touches the stacks prod, with chat, and stage, with
// chat-staging.
func twoStacks(t *testing.T) (*stage, *forgetest.World, *change) {
	t.Helper()
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat"), "stage/main.tf": canaryHouse("chat-staging")})
	w.repository("models").Stacks = append(w.repository("models").Stacks, StackConfig{Name: "stage", Folder: "stage"})
	f := w.forgeOf("models")
	w.begin()
	w.until("in step", 20*time.Minute, func() bool {
		return w.stack("models", "prod").Phase == InStep && w.stack("models", "stage").Phase == InStep
	})
	c := w.propose(git, f, "both", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100), "stage/main.tf": canaryHouse("chat-staging", 10, 100)})
	require.NoError(t, w.pass())
	return w, f, c
}

// A suspension names an endpoint, an address or a stack, and suspends no other stack of the
// pull request. A name that is none suspends nothing and is answered.
func TestASuspensionOfOneEndpointSuspendsNoOtherStack(t *testing.T) {
	w, f, c := twoStacks(t)
	say := func(words string) (prod, stage bool) {
		f.Say(c.number, "olga", "/sluice "+words)
		w.advance(time.Minute)
		w.passes(3*time.Minute, time.Minute)
		return w.stack("models", "prod").Suspended != "", w.stack("models", "stage").Suspended != ""
	}
	for _, words := range []string{"prod/chat because of the audit", "prod because of the audit", "prod: audit", "models/prod/chat", "acme/chat", "chat", `"models/prod"`} {
		prod, stage := say("suspend " + words)
		require.True(t, prod, words)
		require.False(t, stage, words)
		prod, _ = say("continue prod/chat")
		require.False(t, prod)
	}
	prod, stage := say("suspend prod/chatt because of the audit")
	require.False(t, prod || stage)
	require.Contains(t, answers(f, c.number), "Nothing here is named prod/chatt; there is prod, prod/chat, stage, stage/chat-staging.")
	prod, stage = say("suspend sluice_endpoint.e")
	require.False(t, prod || stage)
	require.Contains(t, answers(f, c.number), "Say which one: prod, prod/chat, stage, stage/chat-staging. For example: /sluice suspend prod")
	prod, stage = say("suspend because of the audit")
	require.True(t, prod && stage, "the pull request is named by nothing")
	prod, stage = say("continue stage")
	require.True(t, prod)
	require.False(t, stage)
}

// What a merged pull request would make is named as well, also by a process that has only
// just begun.
func TestAnEndpointThatIsNotMadeYetIsSuspendedByName(t *testing.T) {
	w, git, f := reviewed(t)
	w.repository("models").Approval = ApproveByDigest
	w.begin()
	c := w.propose(git, f, "another", map[string]string{"prod/more.tf": "resource \"sluice_endpoint\" \"talk\" {\n  name = \"talk\"\n}\n"})
	require.NoError(t, w.pass())
	c.merge()
	w.advance(time.Minute)
	w.passes(3*time.Minute, time.Minute)
	w.begin()
	w.passes(time.Minute, time.Minute)
	f.Say(c.number, "olga", "/sluice suspend prod/talk because of the audit")
	w.advance(time.Minute)
	w.passes(3*time.Minute, time.Minute)
	require.NotEmpty(t, w.stack("models", "prod").Suspended, answers(f, c.number))
}
