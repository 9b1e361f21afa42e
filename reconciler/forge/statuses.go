package forge

import (
	"context"
	"fmt"
	"unicode/utf8"
)

// SetStatuses makes a commit's statuses be what is wanted and returns how many it had to
// write. They are read first: a pass without news writes nothing, since a forge keeps
// every status and takes only so many for one commit and context.
func SetStatuses(ctx context.Context, f Forge, commit string, want []Status) (int, error) {
	if len(want) == 0 {
		return 0, nil
	}
	have, err := f.Statuses(ctx, commit)
	if err != nil {
		return 0, err
	}
	known := make(map[string]Status, len(have))
	for _, s := range have {
		known[s.Context] = s
	}
	written := 0
	for _, s := range want {
		if old, ok := known[s.Context]; ok && old == s {
			continue
		}
		if err := f.SetStatus(ctx, commit, s); err != nil {
			return written, err
		}
		known[s.Context] = s
		written++
	}
	return written, nil
}

// FitsComment refuses a comment that is longer than the forge takes. To fold it is the
// caller's, who knows what can be left out.
func (l Limits) FitsComment(what, body string) error {
	if n := utf8.RuneCountInString(body); n > l.Comment {
		return &Refused{What: what, Hint: fmt.Sprintf("the comment has %d characters, this forge takes %d: fold or shorten it", n, l.Comment)}
	}
	return nil
}

// FitsStatus refuses a status whose context or text is longer than the forge takes.
func (l Limits) FitsStatus(what string, s Status) error {
	if n := utf8.RuneCountInString(s.Context); n > l.Context || n == 0 {
		return &Refused{What: what, Hint: fmt.Sprintf("the context of the status has %d characters, this forge takes 1 to %d: name it with forge.Context", n, l.Context)}
	}
	if n := utf8.RuneCountInString(s.Text); n > l.Description {
		return &Refused{What: what, Hint: fmt.Sprintf("the text of the status has %d characters, this forge takes %d: shorten it", n, l.Description)}
	}
	return nil
}
