package api

// Page is one page of a list. NextCursor is null on the last one; an empty page
// never carries a cursor, since a client stops there.
type Page[T any] struct {
	Object     string  `json:"object"` // always "list"
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// Limits of list calls.
const (
	DefaultPageSize = 50
	MaxPageSize     = 500
	MaxEventsPage   = 10000
)
