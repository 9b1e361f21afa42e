package server

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

func (s *Server) listEvents(ctx context.Context, c *call) (any, error) {
	ep, err := s.endpoint(ctx, c)
	if err != nil {
		return nil, err
	}
	q, err := eventQuery(c)
	if err != nil {
		return nil, err
	}
	q.EndpointID = ep.ID
	rows, next, err := s.Engine.Store.Events(ctx, q)
	if err != nil {
		return nil, err
	}
	var cursor *string
	if next > 0 {
		text := base64.RawURLEncoding.EncodeToString([]byte("e" + strconv.FormatInt(next, 10)))
		cursor = &text
	}
	return page(rows, cursor, func(e rollout.Event) (api.Event, error) { return wire.EventToAPI(e), nil })
}

// maxListed bounds a list in a query: each value is one of the database's.
const maxListed = 200

func eventQuery(c *call) (rollout.EventQuery, error) {
	v := c.URL.Query()
	many := func(name string) []string { return list(strings.Join(v[name], ",")) }
	for _, name := range []string{"types", "deploymentIds", "sourceKinds"} {
		if n := len(many(name)); n > maxListed {
			return rollout.EventQuery{}, badRequest(name, fmt.Sprintf("%s names %d values; at most %d", name, n, maxListed))
		}
	}
	q := rollout.EventQuery{Types: many("types"), Deployments: many("deploymentIds"), Subject: strings.TrimSpace(v.Get("subjectId"))}
	for _, k := range many("sourceKinds") {
		k = strings.TrimPrefix(k, api.PrefixSourceKind)
		if k != "ENDPOINT" && k != "DEPLOYMENT" {
			return q, badRequest("sourceKinds", fmt.Sprintf("source kind %q is unknown; use SOURCE_KIND_ENDPOINT or SOURCE_KIND_DEPLOYMENT", k))
		}
		q.Kinds = append(q.Kinds, k)
	}
	switch level := rollout.Level(strings.TrimPrefix(v.Get("minLevel"), api.PrefixLevel)); level {
	case "", rollout.LevelDebug, rollout.LevelInfo, rollout.LevelWarn, rollout.LevelError:
		q.MinLevel = level
	default:
		return q, badRequest("minLevel", fmt.Sprintf("level %q is unknown; use LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN or LEVEL_ERROR", v.Get("minLevel")))
	}
	var err error
	if q.Since, err = instant(v.Get("since"), "since"); err != nil {
		return q, err
	}
	if q.Until, err = instant(v.Get("until"), "until"); err != nil {
		return q, err
	}
	if q.Limit, err = c.limit(api.MaxEventsPage); err != nil {
		return q, err
	}
	if after := v.Get("after"); after != "" {
		raw, err := base64.RawURLEncoding.DecodeString(after)
		digits, ours := strings.CutPrefix(string(raw), "e")
		n, perr := strconv.ParseInt(digits, 10, 64)
		if err != nil || perr != nil || !ours || n <= 0 {
			return q, badRequest("after", "the cursor is not one that this server gave")
		}
		q.Before = n
	}
	return q, nil
}

func instant(text, field string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, badRequest(field, fmt.Sprintf("%s %q is not an RFC 3339 time such as 2026-09-16T20:39:45Z", field, text))
	}
	return t, nil
}

// stamp prints an instant for comparison in a filter.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
