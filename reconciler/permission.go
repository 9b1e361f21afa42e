package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Person is somebody who asks for something, at whatever door.
type Person struct {
	Name string // at the forge; of a key, its name
	Door Door
	// Author of the pull request that the verb is about, at the forge; empty for none.
	Author string
}

// Door is where a person asked. A key's name is not a user's: they are never compared.
type Door string

// The doors.
const (
	AtForge Door = "forge" // a comment, a review, a merge
	ByKey   Door = "key"   // the HTTP door, and the commands that use it
)

// Ranks looks people up. A forge.Forge is one, KeyRank another.
type Ranks interface {
	Role(ctx context.Context, user string) (forge.Role, error)
	Teams(ctx context.Context, user string, of []string) ([]string, error)
}

// KeyRank is the rank of a key's holder: its role, and no team.
type KeyRank forge.Role

// Role is the key's.
func (k KeyRank) Role(context.Context, string) (forge.Role, error) { return forge.Role(k), nil }

// Teams are none.
func (k KeyRank) Teams(context.Context, string, []string) ([]string, error) { return nil, nil }

// Allowed is the answer to whether somebody may do something. Why is a sentence: by
// what it is allowed, or who may.
type Allowed struct {
	OK  bool
	Why string
}

// DefaultGrants is who may use a verb when nothing is configured for it.
func DefaultGrants(v Verb) []Grant {
	switch v {
	case Resume, Cancel, Reverse:
		return []Grant{{Role: forge.Write}}
	case Promote, Approve, Override, Retry, Suspend, Continue:
		return []Grant{{Role: forge.Maintain}}
	case Replan, Help:
		return []Grant{{Role: forge.Read}}
	}
	return nil // an unknown verb is nobody's
}

// Of is who may use a verb. A verb that is configured has its own grants and not the
// defaults beside them; an empty list lets nobody.
func (p Permissions) Of(v Verb) []Grant {
	if grants, ok := p[v]; ok {
		return grants
	}
	return DefaultGrants(v)
}

// Allows decides whether somebody may use a verb. It is the one table of all doors. An
// error means that it could not be decided: then nothing is allowed. The author of a
// pull request approves its plan only where a grant for approve names that user.
func (p Permissions) Allows(ctx context.Context, who Person, v Verb, ranks Ranks) (Allowed, error) {
	grants := p.Of(v)
	if v == Approve && who.author() {
		own := p.naming(v, who.Name)
		if len(own) == 0 {
			return Allowed{Why: fmt.Sprintf("%s may not approve a plan of their own pull request: somebody else of these may: %s", who.Name, Grantees(grants))}, nil
		}
		grants = own
	}
	ok, err := Granted(ctx, grants, who, ranks)
	if err != nil {
		return Allowed{}, fmt.Errorf("whether %s may %s could not be found out, so it is refused: %w", who.Name, v, err)
	}
	if ok.OK {
		return ok, nil
	}
	return Allowed{Why: fmt.Sprintf("%s may not %s: it takes %s", who.called(), v, who.takes(grants))}, nil
}

// naming are the grants of a verb that name a user.
func (p Permissions) naming(v Verb, user string) []Grant {
	return slices.DeleteFunc(slices.Clone(p.Of(v)), func(g Grant) bool { return g.User == "" || !sameUser(g.User, user) })
}

// called is a person by name, and a key as one.
func (p Person) called() string {
	if p.Door == ByKey {
		return "key " + p.Name
	}
	return p.Name
}

// takes names whom some grants let in at the person's door: no user and no team is a key.
func (p Person) takes(grants []Grant) string {
	if p.Door != ByKey {
		return Grantees(grants)
	}
	roles := slices.DeleteFunc(slices.Clone(grants), func(g Grant) bool { return g.Role == forge.None })
	if len(roles) == 0 {
		return "somebody at the forge, and no key"
	}
	return "a key with " + Grantees(roles)
}

// Granted reports whether one of some grants lets a person in: those that need no
// look-up first. An error comes only when no other grant decides.
func Granted(ctx context.Context, grants []Grant, who Person, ranks Ranks) (Allowed, error) {
	if who.Name == "" {
		return Allowed{}, nil
	}
	least, teams := forge.Role(0), []string(nil)
	for _, g := range grants {
		switch {
		case g.User != "":
			if who.Door == AtForge && sameUser(g.User, who.Name) {
				return Allowed{OK: true, Why: "named for it"}, nil
			}
		case g.Team != "":
			teams = append(teams, g.Team)
		case g.Role > forge.None && (least == forge.None || g.Role < least):
			least = g.Role
		}
	}
	var failed error
	if least > forge.None {
		role, err := ranks.Role(ctx, who.Name)
		if err == nil && role >= least {
			return Allowed{OK: true, Why: "has " + role.String()}, nil
		}
		failed = err
	}
	if len(teams) > 0 && who.Door == AtForge {
		member, err := ranks.Teams(ctx, who.Name, teams)
		if err != nil {
			return Allowed{}, err
		}
		for _, t := range member {
			if slices.Contains(teams, t) { // the forge is not taken at its word
				return Allowed{OK: true, Why: "is in team " + t}, nil
			}
		}
	}
	return Allowed{}, failed
}

// Grantees names in words whom some grants let in.
func Grantees(grants []Grant) string {
	var parts []string
	for _, g := range grants {
		switch {
		case g.User != "":
			parts = append(parts, "user "+g.User)
		case g.Team != "":
			parts = append(parts, "team "+g.Team)
		case g.Role > forge.None:
			parts = append(parts, "role "+g.Role.String()+" or more")
		}
	}
	if len(parts) == 0 {
		return "a configuration that lets somebody: now it lets nobody"
	}
	return strings.Join(parts, ", or ")
}

// author reports whether a person asks about their own pull request.
func (p Person) author() bool {
	return p.Door == AtForge && p.Author != "" && sameUser(p.Author, p.Name)
}

// sameUser compares user names as forges do: without regard to the case of plain letters.
func sameUser(a, b string) bool {
	return a == b || ascii(a) && ascii(b) && strings.EqualFold(a, b)
}
