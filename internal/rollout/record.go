package rollout

import (
	"errors"
	"strconv"
	"time"
)

// Change is one all-or-nothing write. Every row carries the version it was read
// at: a row of version 0 is new, and a row whose stored version is another one
// makes the whole change fail with ErrConflict. Events get their place in the feed
// in the same write, so that none is lost or told twice by a crash.
type Change struct {
	Endpoints   []Endpoint
	Deployments []Deployment
	Rollouts    []Rollout
	Keys        []Key
	Events      []Event
	Answers     []Answer
	Delete      []Ref
	Require     []Ref // rows that the change does not touch, but that must still be at this version
}

// Empty reports whether there is nothing to write.
func (c Change) Empty() bool {
	return len(c.Endpoints)+len(c.Deployments)+len(c.Rollouts)+len(c.Keys)+len(c.Events)+len(c.Answers)+len(c.Delete) == 0
}

// Ref names a stored row to delete. A version of 0 deletes whatever is there.
type Ref struct {
	Kind    Kind
	ID      string
	Version int64
}

// Kind is a kind of stored row.
type Kind string

// The kinds of rows that can be deleted.
const (
	KindEndpoint   Kind = "endpoint"
	KindDeployment Kind = "deployment"
	KindRollout    Kind = "rollout"
	KindKey        Kind = "key"
)

// Answer remembers what a create made under an idempotency key, so that a retry
// finds its first try.
type Answer struct {
	Key     string // project, method, path and the caller's key
	Digest  string // of the request's body: a key used again for another body is refused
	Subject string // id of what was made
	At      time.Time
}

// EventQuery selects rows of a feed; all conditions must hold.
type EventQuery struct {
	EndpointID  string
	Types       []string
	Deployments []string // hides endpoint-scoped rows unless Kinds asks for them
	Kinds       []string // ENDPOINT or DEPLOYMENT
	Subject     string
	MinLevel    Level
	Since       time.Time // inclusive
	Until       time.Time // exclusive
	Before      int64     // rows placed before this one; 0 for the newest
	After       int64     // rows placed after this one
	Order       EventOrder
	Limit       int
}

// EventOrder is the direction in which a feed is read.
type EventOrder int

// The two orders. A reader that follows a feed takes the oldest first, from where it
// was.
const (
	NewestFirst EventOrder = iota
	OldestFirst
)

// MeterSlot is a closed window of measurements, in the form the meter gave it.
type MeterSlot struct {
	Key   string // the same key always comes with the same data
	Start time.Time
	Data  []byte
}

// Errors of every store.
var (
	ErrNotFound = errors.New("not found")
	ErrConflict = errors.New("changed by somebody else since it was read")
	ErrExists   = errors.New("exists already")

	ErrUnavailable = errors.New("the store cannot be written now")         // a full disk, for example; a later try may do
	ErrFenced      = errors.New("another engine has taken the store over") // for good: nothing can be written by this one
)

// ETag is the opaque etag of a stored version.
func ETag(version int64) string { return strconv.FormatInt(version, 10) }
