package wire

import (
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// TimingsToAPI tells the waits that an engine runs by.
func TimingsToAPI(t rollout.Timings) api.Timings {
	return api.Timings{
		Propagation:     api.Duration(t.Propagation),
		IngestionLag:    api.Duration(t.IngestionLag),
		DefaultWindow:   api.Duration(t.DefaultWindow),
		MinimumWindow:   api.Duration(t.MinimumWindow),
		DefaultInterval: api.Duration(t.DefaultInterval),
		Stabilization:   api.Duration(t.Stabilization),
		RetryInterval:   api.Duration(t.RetryInterval),
	}
}

// TimingsFromAPI reads the waits that an engine told. What it does not tell keeps
// the published number.
func TimingsFromAPI(in api.Timings) rollout.Timings {
	t := rollout.DefaultTimings()
	t.Propagation = time.Duration(in.Propagation)
	t.IngestionLag = time.Duration(in.IngestionLag)
	t.DefaultWindow = time.Duration(in.DefaultWindow)
	t.MinimumWindow = time.Duration(in.MinimumWindow)
	t.DefaultInterval = time.Duration(in.DefaultInterval)
	t.Stabilization = time.Duration(in.Stabilization)
	t.RetryInterval = time.Duration(in.RetryInterval)
	return t
}
