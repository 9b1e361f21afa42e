package notify

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Stream writes events to an output, one line each.
type Stream struct {
	Out    io.Writer
	Format Format

	mu sync.Mutex
}

// Format is how an event is written.
type Format string

// The formats of a stream: the JSON of a webhook, or words.
const (
	JSONLines Format = ""
	TextLines Format = "text"
)

// Notify writes one event.
func (s *Stream) Notify(_ context.Context, e Event) error {
	line, err := encode(e)
	if err != nil {
		return &Refused{Why: err.Error()}
	}
	if s.Format == TextLines {
		line = []byte(inText(e))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.Out.Write(append(line, '\n'))
	return err
}

// inText is an event in one line of words.
func inText(e Event) string {
	text := fmt.Sprintf("%s %s %s", e.At.UTC().Format(time.RFC3339), e.Severity, e.Kind)
	if where := whereabouts(e); where != "" {
		text += " [" + where + "]"
	}
	text += " " + e.Title
	if e.Text != "" && e.Text != e.Title {
		text += ": " + e.Text
	}
	if e.Reminder > 0 {
		text += fmt.Sprintf(" (reminder %d)", e.Reminder)
	}
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(inert(text))
}
