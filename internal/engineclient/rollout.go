package engineclient

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// CreateRollout makes a rollout in PENDING. key makes a second try find the first.
func (c *Client) CreateRollout(ctx context.Context, endpoint string, spec api.RolloutSpec, key string) (api.Rollout, error) {
	var out api.Rollout
	path, err := c.inProject(ctx, "endpoints", endpoint, "rollouts")
	if err != nil {
		return out, err
	}
	return out, c.call(ctx, Request{Method: http.MethodPost, Path: path, IdempotencyKey: key}, spec, &out)
}

// GetRollout reads a rollout.
func (c *Client) GetRollout(ctx context.Context, endpoint, id string) (api.Rollout, error) {
	var out api.Rollout
	path, err := c.inProject(ctx, "endpoints", endpoint, "rollouts", id)
	if err != nil {
		return out, err
	}
	return out, c.call(ctx, Request{Method: http.MethodGet, Path: path}, nil, &out)
}

// Rollouts lists an endpoint's rollouts; filter is api.FilterActive,
// api.FilterTerminal or empty.
func (c *Client) Rollouts(ctx context.Context, endpoint, filter string) iter.Seq2[api.Rollout, error] {
	path, err := c.inProject(ctx, "endpoints", endpoint, "rollouts")
	if err != nil {
		return failed[api.Rollout](err)
	}
	return pages[api.Rollout](ctx, c, path, ListOptions{Filter: filter}.query())
}

// EveryRollout lists all of an endpoint's rollouts in as few calls as there can be.
func (c *Client) EveryRollout(ctx context.Context, endpoint string) iter.Seq2[api.Rollout, error] {
	path, err := c.inProject(ctx, "endpoints", endpoint, "rollouts")
	if err != nil {
		return failed[api.Rollout](err)
	}
	return pages[api.Rollout](ctx, c, path, ListOptions{PageSize: api.MaxPageSize}.query())
}

// ActiveRollout returns the rollout that holds an endpoint's slot, and whether
// there is one. The list is not filtered by the engine: a hosted one has been seen
// to leave paused rollouts out of its ACTIVE filter.
func (c *Client) ActiveRollout(ctx context.Context, endpoint string) (api.Rollout, bool, error) {
	for r, err := range c.Rollouts(ctx, endpoint, "") {
		if err != nil {
			return api.Rollout{}, false, err
		}
		if !Terminal(r.State) {
			return r, true, nil
		}
	}
	return api.Rollout{}, false, nil
}

// DeleteRollout deletes the record of a rollout that never started or is over.
func (c *Client) DeleteRollout(ctx context.Context, endpoint, id, etag string) error {
	path, err := c.inProject(ctx, "endpoints", endpoint, "rollouts", id)
	if err != nil {
		return err
	}
	q := url.Values{}
	set(q, "etag", etag)
	return c.call(ctx, Request{Method: http.MethodDelete, Path: path, Query: q}, nil, nil)
}

// PreviewRollout asks what a create would make of a spec.
func (c *Client) PreviewRollout(ctx context.Context, endpoint string, spec api.RolloutSpec) (api.Preview, error) {
	var out api.Preview
	path, err := c.inProject(ctx, "endpoints", endpoint, "rollouts", "preview-defaults")
	if err != nil {
		return out, err
	}
	return out, c.call(ctx, Request{Method: http.MethodPost, Path: path}, spec, &out)
}

// StartRollout starts a PENDING rollout. On one that runs already it answers with
// that one, so a lost answer is tried again; an engine that refuses the second
// start is asked what became of the first.
func (c *Client) StartRollout(ctx context.Context, endpoint, id string) (api.Rollout, error) {
	return c.control(ctx, endpoint, id, "start", nil, func(state string) bool { return state != StatePending })
}

// PauseRollout holds a rollout where it is.
func (c *Client) PauseRollout(ctx context.Context, endpoint, id string, body api.Control) (api.Rollout, error) {
	return c.control(ctx, endpoint, id, "pause", &body, isOneOf(StatePausing, StatePaused))
}

// ResumeRollout goes on at the same step and split.
func (c *Client) ResumeRollout(ctx context.Context, endpoint, id string, body api.Control) (api.Rollout, error) {
	return c.control(ctx, endpoint, id, "resume", &body, isOneOf(StateRunning, StateStabilizing, StateCompleted))
}

// PromoteRollout jumps to the last step and runs it in full. Whether a lost one
// was accepted cannot be read from the state, so it is never sent twice.
func (c *Client) PromoteRollout(ctx context.Context, endpoint, id string, body api.Control) (api.Rollout, error) {
	return c.control(ctx, endpoint, id, "promote", &body, nil)
}

// CancelRollout freezes the split that is being served; a reason is required.
func (c *Client) CancelRollout(ctx context.Context, endpoint, id string, body api.Control) (api.Rollout, error) {
	return c.control(ctx, endpoint, id, "cancel", &body, isOneOf(StateCancelling, StateCanceled))
}

// maxControls bounds how often a control is sent whose answer is lost.
const maxControls = 3

// control sends a control. When its answer was lost the rollout is read: if it is
// where the control leads, that is the answer. Only when it is not, the control is
// sent again; one whose effect cannot be read from the state never is.
func (c *Client) control(ctx context.Context, endpoint, id, verb string, body *api.Control, reached func(string) bool) (api.Rollout, error) {
	path, err := c.inProject(ctx, "endpoints", endpoint, "rollouts", id, verb)
	if err != nil {
		return api.Rollout{}, err
	}
	var in any
	if body != nil {
		in = body
	}
	for try := 1; ; try++ {
		var out api.Rollout
		err := c.call(ctx, Request{Method: http.MethodPost, Path: path, Repeat: ReadFirst}, in, &out)
		if !lost(err) || reached == nil || ctx.Err() != nil {
			return out, err
		}
		now, readErr := c.GetRollout(ctx, endpoint, id)
		switch {
		case readErr != nil || try >= maxControls:
			return out, err
		case reached(now.State):
			return now, nil
		}
	}
}

// The full names of the rollout states.
const (
	StatePending      = api.PrefixRolloutState + "PENDING"
	StateRunning      = api.PrefixRolloutState + "RUNNING"
	StateStabilizing  = api.PrefixRolloutState + "STABILIZING"
	StatePausing      = api.PrefixRolloutState + "PAUSING"
	StatePaused       = api.PrefixRolloutState + "PAUSED"
	StateSystemPaused = api.PrefixRolloutState + "SYSTEM_PAUSED"
	StateCancelling   = api.PrefixRolloutState + "CANCELLING"
	StateCanceled     = api.PrefixRolloutState + "CANCELED"
	StateCompleted    = api.PrefixRolloutState + "COMPLETED"
)

// Terminal reports whether a rollout in this state is over. The two legacy states
// of an abort are not terminal names of ours, but a rollout in ABORTED is over.
func Terminal(state string) bool {
	return state == StateCompleted || state == StateCanceled || state == api.PrefixRolloutState+"ABORTED"
}

// Short cuts the enum prefix off a state for people.
func Short(state string) string { return strings.TrimPrefix(state, api.PrefixRolloutState) }

func isOneOf(states ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(states, s) }
}
