package engine

import (
	"errors"
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Kind is the reaction that a refused command needs.
type Kind int

// The kinds of refusals.
const (
	Invalid      Kind = iota + 1 // the request can never be right
	Precondition                 // the state does not allow it
	NotFound
	Exists
	Locked    // a rollout holds it
	Stale     // the etag is not the current one
	Transient // try again
)

// Error is a refused command: what is wrong, and what to do.
type Error struct {
	Kind    Kind
	Message string
	Field   string // of the request, when one is at fault
}

func (e *Error) Error() string { return e.Message }

func refuse(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...)}
}

func invalid(field, format string, args ...any) *Error {
	e := refuse(Invalid, format, args...)
	e.Field = field
	return e
}

// missing is the one answer for an id that does not exist, belongs to another
// endpoint or to another project, so that nothing can be probed.
func missing(what, id string) *Error { return refuse(NotFound, "%s %s not found", what, id) }

// problem makes the first of the core's problems an error.
func problem(ps []rollout.Problem) error {
	if len(ps) == 0 {
		return nil
	}
	return invalid(ps[0].Field, "%s", ps[0].String())
}

// fromControl makes a core refusal an engine error.
func fromControl(err error) error {
	var r *rollout.Refusal
	if errors.As(err, &r) {
		return refuse(Precondition, "%s", r.Error())
	}
	return err
}
