package server

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// limit reads ?limit within 1 and most.
func (c *call) limit(most int) (int, error) {
	text := c.URL.Query().Get("limit")
	if text == "" {
		return min(api.DefaultPageSize, most), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, badRequest("limit", fmt.Sprintf("limit %q is not a whole number from 1 to %d", text, most))
	}
	return min(n, most), nil
}

// place is where an item stands in a list: by instant, then id.
type place struct {
	at time.Time
	id string
}

func (p place) compare(q place) int {
	return cmp.Or(p.at.Compare(q.at), strings.Compare(p.id, q.id))
}

func (p place) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.at.UnixNano(), 10) + " " + p.id))
}

func parseCursor(s string) (place, error) {
	bad := badRequest("after", "the cursor is not one that this server gave")
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return place{}, bad
	}
	at, id, ok := strings.Cut(string(raw), " ")
	ns, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil {
		return place{}, bad
	}
	return place{at: time.Unix(0, ns), id: id}, nil
}

// order is the direction of a list.
type order int

const (
	newestFirst order = iota
	oldestFirst
)

// orderBy reads ?orderBy=created_at|updated_at [asc|desc].
func (c *call) orderBy() (byUpdate updateOrder, o order, err error) {
	text := strings.Fields(c.URL.Query().Get("orderBy"))
	if len(text) == 0 {
		return byCreation, newestFirst, nil
	}
	switch text[0] {
	case "created_at", "createdAt":
		byUpdate = byCreation
	case "updated_at", "updatedAt":
		byUpdate = byChange
	default:
		return 0, 0, badRequest("orderBy", fmt.Sprintf("cannot order by %q; use created_at or updated_at", text[0]))
	}
	switch {
	case len(text) == 1 || strings.EqualFold(text[1], "asc"):
		o = oldestFirst
	case strings.EqualFold(text[1], "desc"):
		o = newestFirst
	default:
		return 0, 0, badRequest("orderBy", fmt.Sprintf("direction %q is neither asc nor desc", text[1]))
	}
	return byUpdate, o, nil
}

type updateOrder int

const (
	byCreation updateOrder = iota
	byChange
)

// paged cuts one page out of items that are filtered already. An empty page never
// carries a cursor.
func paged[T any](c *call, items []T, at func(T) place, o order) ([]T, *string, error) {
	limit, err := c.limit(api.MaxPageSize)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(items, func(a, b T) int {
		if o == newestFirst {
			a, b = b, a
		}
		return at(a).compare(at(b))
	})
	if after := c.URL.Query().Get("after"); after != "" {
		from, err := parseCursor(after)
		if err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(items, func(v T) bool {
			d := at(v).compare(from)
			return d > 0 && o == oldestFirst || d < 0 && o == newestFirst
		})
		if i < 0 {
			i = len(items)
		}
		items = items[i:]
	}
	if len(items) <= limit {
		return items, nil, nil
	}
	next := at(items[limit-1]).cursor()
	return items[:limit], &next, nil
}

// page encodes items one by one.
func page[T, V any](items []T, next *string, encode func(T) (V, error)) (api.Page[V], error) {
	out := api.Page[V]{Object: "list", Data: make([]V, 0, len(items)), NextCursor: next}
	for _, item := range items {
		v, err := encode(item)
		if err != nil {
			return out, err
		}
		out.Data = append(out.Data, v)
	}
	return out, nil
}
