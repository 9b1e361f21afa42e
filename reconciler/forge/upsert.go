package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"
)

// Upsert makes the one comment of ours on a pull request that begins with a marker, an
// HTML comment such as "<!-- sluice: prod/chat -->", say body, and returns it.
//
// A comment counts only when our own account wrote it and the marker is its first line:
// the text of others, also where we repeat it, is never taken for it. It is edited only
// when the text differs. One that somebody deleted is made again, once. Two calls in
// one process take turns, and an answer that was lost is looked for before an error is
// returned, so that there is never a second comment; between processes the caller's
// lease sees to that.
func Upsert(ctx context.Context, f Forge, number int, marker, body string) (Comment, error) {
	if !strings.HasPrefix(marker, "<!--") || !strings.HasSuffix(marker, "-->") || strings.ContainsAny(marker, "\r\n") {
		return Comment{}, fmt.Errorf("%q cannot mark a comment: it must be one line of HTML comment", marker)
	}
	if !strings.HasPrefix(body, marker) {
		body = marker + "\n" + body
	}
	s, err := enter(ctx, f, number, marker)
	if err != nil {
		return Comment{}, err
	}
	defer s.leave()
	old, found, err := s.find(ctx, f)
	if err != nil {
		return Comment{}, err
	}
	if found {
		return s.edit(ctx, f, old, body)
	}
	if s.made.ID != 0 {
		// The list may be older than what we wrote: only the comment itself can say that
		// it is gone.
		c := s.made
		c.Body = body
		if err := f.EditComment(ctx, number, c.ID, body); !gone(err) {
			return c, err
		}
		s.made = Comment{}
	}
	return s.make(ctx, f, body)
}

// find reads the comments and returns the oldest that is ours and has the marker.
func (s *sticky) find(ctx context.Context, f Forge) (Comment, bool, error) {
	all, err := f.Comments(ctx, s.key.number, time.Time{})
	if err != nil {
		return Comment{}, false, err
	}
	for _, c := range all {
		if c.Bot && strings.HasPrefix(strings.TrimSpace(c.Body), s.key.marker) {
			return c, true, nil
		}
	}
	return Comment{}, false, nil
}

func (s *sticky) edit(ctx context.Context, f Forge, c Comment, body string) (Comment, error) {
	if sameText(c.Body, body) {
		return c, nil
	}
	if err := f.EditComment(ctx, s.key.number, c.ID, body); err != nil {
		return Comment{}, err
	}
	c.Body = body
	return c, nil
}

func (s *sticky) make(ctx context.Context, f Forge, body string) (Comment, error) {
	c, err := f.Comment(ctx, s.key.number, body)
	if err == nil {
		s.remember(c)
		return c, nil
	}
	var refused *Refused
	var limited *Limited
	if errors.As(err, &refused) || errors.As(err, &limited) {
		return Comment{}, err
	}
	// The answer was lost; the comment may be there.
	again, found, readErr := s.find(ctx, f)
	if readErr != nil || !found {
		return Comment{}, err
	}
	s.remember(again)
	return again, nil
}

// remember keeps what was made, without its text, which may be long.
func (s *sticky) remember(c Comment) {
	c.Body = ""
	s.made = c
}

// gone reports whether an error says that the comment is not there any more.
func gone(err error) bool {
	var refused *Refused
	return errors.As(err, &refused) && (refused.Status == http.StatusNotFound || refused.Status == http.StatusGone)
}

// sameText compares as forges store: line ends and blanks at the end may differ.
func sameText(a, b string) bool {
	normal := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return normal(a) == normal(b)
}

// stickyKey names one sticky comment.
type stickyKey struct {
	forge  any // nil for one that cannot be compared
	number int
	marker string
}

// sticky is the turn-taking for one comment, and what this process made last.
type sticky struct {
	key   stickyKey
	turn  chan struct{}
	users int // who have the turn or wait for it
	made  Comment
}

// mostStickies bounds how many comments this process remembers at rest.
const mostStickies = 4096

var (
	stickiesMu sync.Mutex
	stickies   = map[stickyKey]*sticky{}
)

// enter waits for the turn at a comment.
func enter(ctx context.Context, f Forge, number int, marker string) (*sticky, error) {
	key := stickyKey{number: number, marker: marker}
	if reflect.TypeOf(f).Comparable() {
		key.forge = f
	}
	stickiesMu.Lock()
	s, ok := stickies[key]
	if !ok {
		s = &sticky{key: key, turn: make(chan struct{}, 1)}
		stickies[key] = s
	}
	s.users++
	stickiesMu.Unlock()
	select {
	case s.turn <- struct{}{}:
		return s, nil
	case <-ctx.Done():
		s.forget()
		return nil, ctx.Err()
	}
}

func (s *sticky) leave() {
	<-s.turn
	s.forget()
}

// forget lets go of the comment, and of others at rest when there are too many. One that
// is forgotten is found again by its marker.
func (s *sticky) forget() {
	stickiesMu.Lock()
	defer stickiesMu.Unlock()
	s.users--
	if s.users == 0 && s.made.ID == 0 {
		delete(stickies, s.key)
	}
	for key, other := range stickies {
		if len(stickies) <= mostStickies {
			return
		}
		if other.users == 0 {
			delete(stickies, key)
		}
	}
}
