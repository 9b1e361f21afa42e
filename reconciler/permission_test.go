package reconciler

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// ranks is a forge that knows a few people.
type ranks struct {
	roles  map[string]forge.Role
	teams  map[string][]string
	broken error
}

func (r ranks) Role(_ context.Context, user string) (forge.Role, error) {
	return r.roles[user], r.broken
}

func (r ranks) Teams(_ context.Context, user string, _ []string) ([]string, error) {
	return r.teams[user], r.broken
}

var people = ranks{
	roles: map[string]forge.Role{"reader": forge.Read, "writer": forge.Write, "maintainer": forge.Maintain, "owner": forge.Admin},
	teams: map[string][]string{"reader": {"acme/oncall"}, "writer": {"acme/others"}},
}

// H7: one table, whatever the door.
func TestTheSameTableHoldsAtEveryDoor(t *testing.T) {
	least := map[Verb]forge.Role{
		Resume: forge.Write, Cancel: forge.Write, Reverse: forge.Write,
		Promote: forge.Maintain, Approve: forge.Maintain, Override: forge.Maintain, Retry: forge.Maintain, Suspend: forge.Maintain, Continue: forge.Maintain,
		Replan: forge.Read, Help: forge.Read,
	}
	require.Len(t, usages, len(least), "each verb has its row")
	for verb, need := range least {
		for name, role := range people.roles {
			for _, door := range []struct {
				who   Person
				ranks Ranks
			}{{Person{Name: name, Door: AtForge, Author: "somebody"}, people}, {Person{Name: name, Door: ByKey}, KeyRank(role)}} {
				got, err := Permissions(nil).Allows(t.Context(), door.who, verb, door.ranks)
				require.NoError(t, err)
				require.Equal(t, role >= need, got.OK, "%s %s at %s", name, verb, door.who.Door)
				require.NotEmpty(t, got.Why)
			}
		}
	}
}

func TestARefusalSaysWhoMay(t *testing.T) {
	p := Permissions{Promote: {{Role: forge.Admin}, {User: "bob"}, {Team: "acme/oncall"}}, Suspend: {}}
	got, err := p.Allows(t.Context(), Person{Name: "writer", Door: AtForge}, Promote, people)
	require.NoError(t, err)
	require.Equal(t, Allowed{Why: "writer may not promote: it takes role admin or more, or user bob, or team acme/oncall"}, got)
	got, err = p.Allows(t.Context(), Person{Name: "owner", Door: AtForge}, Suspend, people)
	require.NoError(t, err)
	require.Equal(t, "owner may not suspend: it takes a configuration that lets somebody: now it lets nobody", got.Why)
	got, err = p.Allows(t.Context(), Person{Name: "owner", Door: AtForge}, Verb("explode"), people)
	require.NoError(t, err)
	require.False(t, got.OK)
}

func TestUsersAndTeamsAreLetIn(t *testing.T) {
	p := Permissions{Cancel: {{User: "Bob"}, {Team: "acme/oncall"}}}
	for name, ok := range map[string]bool{"bob": true, "reader": true, "writer": false, "owner": false, "": false, "bo\u212a": false} {
		got, err := p.Allows(t.Context(), Person{Name: name, Door: AtForge}, Cancel, people)
		require.NoError(t, err)
		require.Equal(t, ok, got.OK, name)
	}
	got, err := p.Allows(t.Context(), Person{Name: "bob", Door: ByKey}, Cancel, KeyRank(forge.Admin))
	require.NoError(t, err)
	require.False(t, got.OK, "a key that is called as a user is not that user")
}

func TestAnAuthorDoesNotApproveTheirOwnPlanUnlessConfigured(t *testing.T) {
	who := Person{Name: "owner", Door: AtForge, Author: "Owner"}
	got, err := Permissions(nil).Allows(t.Context(), who, Approve, people)
	require.NoError(t, err)
	require.Equal(t, Allowed{Why: "owner may not approve a plan of their own pull request: somebody else of these may: role maintain or more"}, got)
	got, err = Permissions{Approve: {{Role: forge.Maintain}, {User: "owner"}}}.Allows(t.Context(), who, Approve, people)
	require.NoError(t, err)
	require.True(t, got.OK)
	who.Author = "writer"
	got, err = Permissions(nil).Allows(t.Context(), who, Approve, people)
	require.NoError(t, err)
	require.Equal(t, Allowed{OK: true, Why: "has admin"}, got)
	who = Person{Name: "owner", Door: AtForge, Author: "owner"}
	got, err = Permissions(nil).Allows(t.Context(), who, Promote, people)
	require.NoError(t, err)
	require.True(t, got.OK, "the author may do the rest")
}

// H3: what could not be looked up is refused.
func TestALookUpThatFailsRefuses(t *testing.T) {
	broken := ranks{roles: people.roles, teams: people.teams, broken: errors.New("403")}
	for _, p := range []Permissions{nil, {Cancel: {{Team: "acme/oncall"}}}, {Cancel: {{Role: forge.Read}, {Team: "acme/oncall"}}}} {
		got, err := p.Allows(t.Context(), Person{Name: "owner", Door: AtForge}, Cancel, broken)
		require.EqualError(t, err, "whether owner may cancel could not be found out, so it is refused: 403")
		require.False(t, got.OK)
	}
	got, err := Permissions{Cancel: {{User: "owner"}, {Role: forge.Read}}}.Allows(t.Context(), Person{Name: "owner", Door: AtForge}, Cancel, broken)
	require.NoError(t, err, "who is named needs no look-up")
	require.True(t, got.OK)
}

// A forge that answers with teams that were not asked for lets nobody in by them.
func TestOnlyTeamsOfTheTableCount(t *testing.T) {
	got, err := Permissions{Cancel: {{Team: "acme/oncall"}}}.Allows(t.Context(), Person{Name: "writer", Door: AtForge}, Cancel, people)
	require.NoError(t, err)
	require.False(t, got.OK)
}

func TestAHigherRoleMayAllThatALowerOneMay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		grants := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) Grant {
			return Grant{Role: forge.Role(rapid.IntRange(int(forge.None), int(forge.Admin)).Draw(rt, "role"))}
		})).Draw(rt, "grants")
		low := rapid.IntRange(int(forge.None), int(forge.Admin)-1).Draw(rt, "low")
		p := Permissions{Cancel: grants}
		less, err := p.Allows(context.Background(), Person{Name: "a", Door: ByKey}, Cancel, KeyRank(low))
		require.NoError(rt, err)
		more, err := p.Allows(context.Background(), Person{Name: "a", Door: ByKey}, Cancel, KeyRank(low+1))
		require.NoError(rt, err)
		require.True(rt, more.OK || !less.OK)
	})
}
