package reconciler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return out
}

func TestFreezes(t *testing.T) {
	berlin := func(cron string, length time.Duration) Freeze {
		return Freeze{Cron: cron, For: length, Zone: "Europe/Berlin"}
	}
	christmas := Freeze{From: at(t, "2026-12-24T00:00:00+01:00"), Until: at(t, "2027-01-02T00:00:00+01:00")}
	weekend := berlin("0 18 * * 5", 62*time.Hour)
	night := berlin("30 2 * * *", time.Hour)
	for _, c := range []struct {
		what  string
		f     Freeze
		now   string
		until string // empty when it does not hold
	}{
		{"once, just before", christmas, "2026-12-23T22:59:59Z", ""},
		{"once, at its beginning", christmas, "2026-12-23T23:00:00Z", "2027-01-01T23:00:00Z"},
		{"once, at its end", christmas, "2027-01-01T23:00:00Z", ""},
		{"a weekend, Friday noon", weekend, "2026-07-03T12:00:00+02:00", ""},
		{"a weekend, Friday evening", weekend, "2026-07-03T18:00:00+02:00", "2026-07-06T08:00:00+02:00"},
		{"a weekend, Monday before eight", weekend, "2026-07-06T07:59:59+02:00", "2026-07-06T08:00:00+02:00"},
		{"a weekend, Monday at eight", weekend, "2026-07-06T08:00:00+02:00", ""},
		{"in winter it is the same hour of the clock", weekend, "2026-01-02T17:00:00Z", "2026-01-05T07:00:00Z"},
		{"and not an hour before", weekend, "2026-01-02T16:30:00Z", ""},
		{"the weekend on which clocks go forward lasts as long", weekend, "2026-03-29T12:00:00+02:00", "2026-03-30T09:00:00+02:00"},
		{"the weekend on which they go back too", weekend, "2026-10-25T12:00:00+01:00", "2026-10-26T07:00:00+01:00"},
		{"half past two that the clock never shows: an hour later by the clock", night, "2026-03-29T03:30:00+02:00", "2026-03-29T04:30:00+02:00"},
		{"and not before", night, "2026-03-29T03:29:59+02:00", ""},
		{"half past two that it shows twice: the first", night, "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"},
		{"and not the second", night, "2026-10-25T02:30:00+01:00", ""},
		{"the zone of who asks does not matter", weekend, "2026-07-04T06:00:00+12:00", "2026-07-06T08:00:00+02:00"},
		{"without a zone it is UTC", Freeze{Cron: "0 0 * * *", For: time.Hour}, "2026-07-04T00:30:00Z", "2026-07-04T01:00:00Z"},
		{"a zone without whole hours", Freeze{Cron: "0 9 * * *", For: time.Hour, Zone: "Asia/Kathmandu"}, "2026-07-04T03:15:00Z", "2026-07-04T04:15:00Z"},
		{"Lord Howe puts its clocks forward by half an hour", Freeze{Cron: "15 2 * * *", For: time.Hour, Zone: "Australia/Lord_Howe"}, "2026-10-03T15:45:00Z", "2026-10-03T16:45:00Z"},
		{"those that follow each other are one", Freeze{Cron: "0 8,9,10 * * *", For: 90 * time.Minute}, "2026-07-04T08:30:00Z", "2026-07-04T11:30:00Z"},
		{"those that touch too", Freeze{Cron: "0 8,9 * * *", For: time.Hour}, "2026-07-04T08:30:00Z", "2026-07-04T10:00:00Z"},
		{"one that never ends is told for a hundred of them", Freeze{Cron: "* * * * *", For: time.Hour}, "2026-07-04T08:00:30Z", "2026-07-08T13:00:00Z"},
		{"once a year, a month long", Freeze{Cron: "0 0 1 12 *", For: 744 * time.Hour}, "2026-12-31T23:59:00Z", "2027-01-01T00:00:00Z"},
		{"and not in July", Freeze{Cron: "0 0 1 12 *", For: 744 * time.Hour}, "2026-07-31T23:59:00Z", ""},
	} {
		until, ok := c.f.Frozen(at(t, c.now))
		require.Equal(t, c.until != "", ok, c.what)
		if ok {
			require.True(t, at(t, c.until).Equal(until), "%s: until %s", c.what, until)
		}
	}
}

func TestAFreezeThatCannotBeReadHolds(t *testing.T) {
	for _, f := range []Freeze{{Cron: "soon"}, {Cron: "0 0 * * *"}, {Cron: "0 0 31 2 *", For: time.Hour}, {Cron: "@daily", For: time.Hour}, {Cron: "0 0 * * *", For: time.Hour, Zone: "Mars/Olympus"}} {
		_, ok := f.Frozen(time.Unix(1_790_000_000, 0))
		require.True(t, ok, "%+v", f)
	}
}

func TestAFreezeCoversItsStacks(t *testing.T) {
	k := StackKey{"models", "prod"}
	require.True(t, Freeze{}.Covers(k))
	require.True(t, Freeze{Stacks: []StackKey{{Repository: "models"}}}.Covers(k))
	require.True(t, Freeze{Stacks: []StackKey{{"x", "y"}, k}}.Covers(k))
	require.False(t, Freeze{Stacks: []StackKey{{"models", "staging"}, {Repository: "prod"}}}.Covers(k))
}
