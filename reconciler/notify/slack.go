package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Slack posts events to an incoming webhook of Slack or of a chat that takes the same.
// Text of others mentions nobody and links nowhere.
type Slack struct {
	URL    Secret
	Client *http.Client
}

// message is what is posted.
type message struct {
	Text        string  `json:"text"` // where blocks are not shown, such as in a push notification
	Blocks      []block `json:"blocks"`
	Parse       string  `json:"parse"`
	LinkNames   bool    `json:"link_names"`
	UnfurlLinks bool    `json:"unfurl_links"`
	UnfurlMedia bool    `json:"unfurl_media"`
}

type block struct {
	Type     string  `json:"type"`
	Text     *words  `json:"text,omitempty"`
	Fields   []words `json:"fields,omitempty"`
	Elements []words `json:"elements,omitempty"`
}

// words are a text. Verbatim keeps the chat from looking for names and links in it.
type words struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Verbatim *bool  `json:"verbatim,omitempty"`
}

func marked(text string) words {
	verbatim := true
	return words{Type: "mrkdwn", Text: text, Verbatim: &verbatim}
}

// shownPlain is text of others that is shown as it is.
func shownPlain(text string, most int) words {
	return words{Type: "plain_text", Text: cut(quiet(text), most)}
}

// Notify posts one event.
func (s *Slack) Notify(ctx context.Context, e Event) error {
	text, err := json.Marshal(compose(e))
	if err != nil {
		return &Refused{Why: err.Error()}
	}
	return post(ctx, s.Client, s.URL, http.Header{}, text)
}

// compose lays an event out: title, text, facts, and where it was.
func compose(e Event) message {
	title := headline(e)
	m := message{Text: cut(quiet(title), 300), Parse: "none", Blocks: []block{{Type: "header", Text: ptr(shownPlain(title, 150))}}}
	if e.Text != "" && e.Text != e.Title {
		m.Blocks = append(m.Blocks, block{Type: "section", Text: ptr(shownPlain(e.Text, 2900))})
	}
	var fields []words
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		if len(fields) < 10 { // what a section takes
			fields = append(fields, shownPlain(name+": "+e.Fields[name], 500))
		}
	}
	if len(fields) > 0 {
		m.Blocks = append(m.Blocks, block{Type: "section", Fields: fields})
	}
	if where := whereabouts(e); where != "" {
		m.Blocks = append(m.Blocks, block{Type: "context", Elements: []words{shownPlain(where, 500)}})
	}
	if link, ok := plainLink(e.URL); ok {
		m.Blocks = append(m.Blocks, block{Type: "section", Text: ptr(marked("<" + link + "|Open>"))})
	}
	return m
}

func ptr(w words) *words { return &w }

// headline is an event's title behind its sign.
func headline(e Event) string {
	sign := map[Severity]string{Info: "ℹ", Warning: "⚠", Urgent: "‼"}[e.Severity]
	title := strings.TrimSpace(strings.ReplaceAll(sign+" "+e.Title, "\n", " "))
	if e.Reminder > 0 {
		title += fmt.Sprintf(" (reminder %d)", e.Reminder)
	}
	return title
}

// whereabouts are the repository, stack, endpoint, commit and rollout of an event.
func whereabouts(e Event) string {
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"repository", e.Repository}, {"stack", e.Stack}, {"endpoint", e.Endpoint}, {"commit", cut(e.Commit, 12)}, {"rollout", e.RolloutID},
	} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	return strings.Join(parts, " · ")
}

// plainLink is an address that can stand between < and |.
func plainLink(text string) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.ContainsAny(text, "<>|\n\r\t \"'`") {
		return "", false
	}
	return strings.ReplaceAll(u.String(), "&", "&amp;"), true
}
