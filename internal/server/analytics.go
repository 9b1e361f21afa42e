package server

import (
	"context"
	"strconv"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
)

// analytics sums up what the gateway measured. It reaches back as far as the
// meter's memory, which the answer's time range tells; a time series is refused
// rather than answered with an empty one.
func (s *Server) analytics(ctx context.Context, c *call) (any, error) {
	ep, err := s.endpoint(ctx, c)
	if err != nil {
		return nil, err
	}
	v := c.URL.Query()
	if v.Get("includeTimeSeries") == "true" {
		return nil, badRequest("includeTimeSeries", "this engine keeps no time series; scrape /metrics for one")
	}
	now := s.Engine.Now()
	from, err := instant(v.Get("startTime"), "startTime")
	if err != nil {
		return nil, err
	}
	to, err := instant(v.Get("endTime"), "endTime")
	if err != nil {
		return nil, err
	}
	if to.IsZero() || to.After(now) {
		to = now
	}
	if earliest := now.Add(-engine.UsageMemory); from.Before(earliest) {
		from = earliest
	}
	if !from.Before(to) {
		return nil, badRequest("startTime", "the time range is empty, or lies before what the engine remembers ("+engine.UsageMemory.String()+")")
	}
	deployments, err := s.Engine.Store.Deployments(ctx, ep.ID)
	if err != nil {
		return nil, err
	}
	only := v.Get("deploymentId")
	span := api.TimeRange{StartTime: api.At(from), EndTime: api.At(to)}
	out := api.Analytics{EndpointID: ep.ID, TimeRange: span, DeploymentAnalytics: []api.DeploymentAnalytics{}}
	var sum engine.Usage
	for _, d := range deployments {
		if only != "" && d.ID != only {
			continue
		}
		u := s.Engine.Meter.Usage(d.ID, from, to)
		m := usage(u, to.Sub(from))
		m.EndpointID, m.DeploymentID = ep.ID, d.ID
		m.LatencyMetrics = &api.LatencyMetrics{LatencyP50Ms: u.P50, LatencyP99Ms: u.P99}
		out.DeploymentAnalytics = append(out.DeploymentAnalytics, api.DeploymentAnalytics{DeploymentID: d.ID, EndpointID: ep.ID, TimeRange: span, Metrics: m})
		sum.Requests += u.Requests
		sum.ServerErrors += u.ServerErrors
	}
	if only != "" && len(out.DeploymentAnalytics) == 0 {
		return nil, notFound("deployment", only)
	}
	out.Metrics = usage(sum, to.Sub(from))
	out.Metrics.EndpointID = ep.ID
	return out, nil
}

func usage(u engine.Usage, over time.Duration) api.AnalyticsMetrics {
	m := api.AnalyticsMetrics{RequestMetrics: api.RequestMetrics{
		TotalRequests:      strconv.FormatInt(u.Requests, 10),
		SuccessfulRequests: strconv.FormatInt(u.Requests-u.ServerErrors, 10),
		FailedRequests:     strconv.FormatInt(u.ServerErrors, 10),
		RequestsPerSecond:  float64(u.Requests) / over.Seconds(),
	}}
	if u.Requests > 0 {
		m.ErrorMetrics.ErrorRate = float64(u.ServerErrors) / float64(u.Requests)
	}
	return m
}
