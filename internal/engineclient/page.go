package engineclient

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// ListOptions narrow a list. The zero value asks for everything in the engine's
// own order.
type ListOptions struct {
	Filter   string
	OrderBy  string
	PageSize int // 0 for the engine's default
}

func (o ListOptions) query() url.Values {
	q := url.Values{}
	set(q, "filter", o.Filter)
	set(q, "orderBy", o.OrderBy)
	if o.PageSize > 0 {
		q.Set("limit", strconv.Itoa(o.PageSize))
	}
	return q
}

// set leaves an empty value out.
func set(q url.Values, key, value string) {
	if value != "" {
		q.Set(key, value)
	}
}

// pages walks a list page by page. It ends after the last page, after an empty
// one, or with the first error.
func pages[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		for {
			var page api.Page[T]
			if err := c.call(ctx, Request{Method: http.MethodGet, Path: path, Query: query}, nil, &page); err != nil {
				yield(zero, err)
				return
			}
			for _, item := range page.Data {
				if !yield(item, nil) {
					return
				}
			}
			if page.NextCursor == nil || *page.NextCursor == "" || len(page.Data) == 0 {
				return
			}
			query = clone(query)
			query.Set("after", *page.NextCursor)
		}
	}
}

func clone(q url.Values) url.Values {
	out := url.Values{}
	for k, v := range q {
		out[k] = append([]string(nil), v...)
	}
	return out
}

// failed is a list that is only an error.
func failed[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		yield(zero, err)
	}
}

// Collect reads a whole list; it stops at the first error.
func Collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var out []T
	for item, err := range seq {
		if err != nil {
			return out, err
		}
		out = append(out, item)
	}
	return out, nil
}
