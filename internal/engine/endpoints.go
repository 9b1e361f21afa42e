package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// nameForm is what endpoints and deployments may be called: it becomes part of an
// inference model name and of log lines.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func checkName(name string) error {
	if !nameForm.MatchString(name) {
		return invalid("name", "name %q is not valid: use letters, digits, dots, dashes and underscores, at most 128, beginning with a letter or digit", name)
	}
	return nil
}

// Caller is who asks: it stands in the events.
type Caller struct {
	Name           string
	IdempotencyKey string // of a create; empty for none
	Digest         string // of the create's body
}

// CreateEndpoint makes an unrouted endpoint.
func (e *Engine) CreateEndpoint(ctx context.Context, by Caller, name, visibility string) (rollout.Endpoint, error) {
	if slug, bare, ok := strings.Cut(name, "/"); ok {
		if slug != e.Project.Slug {
			return rollout.Endpoint{}, invalid("name", "name %q is of project %q, and this is %q", name, slug, e.Project.Slug)
		}
		name = bare
	}
	if err := checkName(name); err != nil {
		return rollout.Endpoint{}, err
	}
	if id, err := e.repeated(ctx, by); err != nil || id != "" {
		return first(err, func() (rollout.Endpoint, error) { return e.Endpoint(ctx, id) })
	}
	now := e.Now()
	ep := rollout.Endpoint{ID: e.NewID("ep"), ProjectID: e.Project.ID, Name: name, Visibility: visibility, CreatedAt: now, UpdatedAt: now}
	err := e.Store.Commit(ctx, rollout.Change{
		Endpoints: []rollout.Endpoint{ep},
		Events:    []rollout.Event{e.endpointEvent(ep, by, "endpoint.created", nil)},
		Answers:   e.answer(by, ep.ID),
	})
	if errors.Is(err, rollout.ErrExists) {
		if id, again := e.repeated(ctx, by); again != nil || id != "" { // the first try was under way
			return first(again, func() (rollout.Endpoint, error) { return e.Endpoint(ctx, id) })
		}
		return rollout.Endpoint{}, refuse(Exists, "endpoint %q already exists in this project", name)
	}
	if err != nil {
		return rollout.Endpoint{}, err
	}
	if err := e.routes.apply(ctx, ep.ID); err != nil {
		e.Logger.Error("route a new endpoint", "endpoint", ep.ID, "error", err)
	}
	return e.Endpoint(ctx, ep.ID)
}

// repeated finds what an earlier try of the same create made.
func (e *Engine) repeated(ctx context.Context, by Caller) (string, error) {
	if by.IdempotencyKey == "" {
		return "", nil
	}
	a, err := e.Store.Answer(ctx, by.IdempotencyKey)
	if errors.Is(err, rollout.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if a.Digest != by.Digest {
		return "", invalid("Idempotency-Key", "this idempotency key was used for another request; use a new one")
	}
	return a.Subject, nil
}

// first reads what the first try of a create made, unless looking for it failed.
func first[T any](err error, read func() (T, error)) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return read()
}

func (e *Engine) answer(by Caller, subject string) []rollout.Answer {
	if by.IdempotencyKey == "" {
		return nil
	}
	return []rollout.Answer{{Key: by.IdempotencyKey, Digest: by.Digest, Subject: subject, At: e.Now()}}
}

// Endpoint reads one endpoint of the project.
func (e *Engine) Endpoint(ctx context.Context, id string) (rollout.Endpoint, error) {
	ep, err := e.Store.Endpoint(ctx, id)
	if errors.Is(err, rollout.ErrNotFound) {
		return ep, missing("endpoint", id)
	}
	return ep, err
}

// EndpointChange is what an update sets; nil leaves a field alone.
type EndpointChange struct {
	Visibility *string
	Split      *[]rollout.Weight
	BreakGlass *BreakGlass // edits the split although a rollout holds it
}

// UpdateEndpoint changes an endpoint. Its split is refused while a rollout holds
// the lock, unless the glass is broken.
func (e *Engine) UpdateEndpoint(ctx context.Context, by Caller, id, etag string, set EndpointChange) (rollout.Endpoint, error) {
	err := e.update(ctx, func() (rollout.Change, error) {
		ep, err := e.Endpoint(ctx, id)
		if err != nil {
			return rollout.Change{}, err
		}
		if err := checkETag(etag, "endpoint", id, ep.Version); err != nil {
			return rollout.Change{}, err
		}
		if set.BreakGlass != nil && ep.ActiveRollout != "" {
			if set.Split == nil || set.Visibility != nil {
				return rollout.Change{}, invalid("sluice.breakGlass", "breaking the glass edits trafficSplit, and nothing else in the same request")
			}
			return e.breakGlass(ctx, by, ep, *set.Split, *set.BreakGlass)
		}
		var paths []string
		if set.Visibility != nil {
			ep.Visibility, paths = *set.Visibility, append(paths, "visibility")
		}
		if set.Split != nil {
			if err := e.checkSplit(ctx, ep, *set.Split); err != nil {
				return rollout.Change{}, err
			}
			ep.Split, paths = *set.Split, append(paths, "trafficSplit")
			ep.Generation = e.routes.next()
		}
		if len(paths) == 0 {
			return rollout.Change{}, invalid("", "no fields to update: name them in the body, or in updateMask to clear them")
		}
		ep.UpdatedAt = e.Now()
		return rollout.Change{Endpoints: []rollout.Endpoint{ep}, Events: []rollout.Event{e.endpointEvent(ep, by, "endpoint.updated", paths)}}, nil
	})
	var refused *Error
	if errors.As(err, &refused) {
		return rollout.Endpoint{}, err
	}
	if err != nil { // the store may have kept it and lost the answer: the routers follow the record
		return rollout.Endpoint{}, errors.Join(err, e.routes.apply(ctx, id))
	}
	err = e.routes.apply(ctx, id)
	e.pokeEndpoint(ctx, id) // a rollout whose split was edited follows it at once
	if err != nil {
		return rollout.Endpoint{}, fmt.Errorf("the change is stored, but the gateway cannot be told: %w", err)
	}
	return e.Endpoint(ctx, id)
}

func (e *Engine) checkSplit(ctx context.Context, ep rollout.Endpoint, split []rollout.Weight) error {
	if ep.ActiveRollout != "" {
		return e.locked(ctx, ep, "cannot update traffic_split while rollout %s is active (%s); let it end, or cancel it")
	}
	return e.checkWeights(ctx, ep, split)
}

// checkWeights refuses a split that cannot be served as written.
func (e *Engine) checkWeights(ctx context.Context, ep rollout.Endpoint, split []rollout.Weight) error {
	known, err := e.Store.Deployments(ctx, ep.ID)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, w := range split {
		field := fmt.Sprintf("trafficSplit[%d]", i)
		if !slices.ContainsFunc(known, func(d rollout.Deployment) bool { return d.ID == w.Deployment }) {
			return invalid(field+".deploymentId", "deployment %s is not one of endpoint %s", w.Deployment, ep.ID)
		}
		if seen[w.Deployment] {
			return invalid(field+".deploymentId", "deployment %s stands twice in the split", w.Deployment)
		}
		seen[w.Deployment] = true
		if w.Weight < 0 || math.IsNaN(w.Weight) || math.IsInf(w.Weight, 0) || w.Weight > 1e9 {
			return invalid(field+".weight", "weight %v is not a finite number from 0 to 1e9", w.Weight)
		}
	}
	return nil
}

// locked is the refusal that names the rollout which holds an endpoint.
func (e *Engine) locked(ctx context.Context, ep rollout.Endpoint, format string) *Error {
	state := "unknown"
	if r, err := e.Store.Rollout(ctx, ep.ActiveRollout); err == nil {
		state = string(r.State)
	}
	return refuse(Locked, format, ep.ActiveRollout, state)
}

// DeleteEndpoint removes an endpoint that has no deployment left.
func (e *Engine) DeleteEndpoint(ctx context.Context, by Caller, id, etag string) error {
	err := e.update(ctx, func() (rollout.Change, error) {
		ep, err := e.Endpoint(ctx, id)
		if err != nil {
			return rollout.Change{}, err
		}
		if err := checkETag(etag, "endpoint", id, ep.Version); err != nil {
			return rollout.Change{}, err
		}
		left, err := e.Store.Deployments(ctx, id)
		if err != nil {
			return rollout.Change{}, err
		}
		if len(left) > 0 {
			return rollout.Change{}, refuse(Precondition, "endpoint %s still has %d deployment(s); delete them first", id, len(left))
		}
		history, err := e.Store.Rollouts(ctx, id)
		if err != nil {
			return rollout.Change{}, err
		}
		c := rollout.Change{Events: []rollout.Event{e.endpointEvent(ep, by, "endpoint.deleted", nil)}}
		for _, r := range history {
			c.Delete = append(c.Delete, rollout.Ref{Kind: rollout.KindRollout, ID: r.ID})
		}
		c.Delete = append(c.Delete, rollout.Ref{Kind: rollout.KindEndpoint, ID: id, Version: ep.Version}) // after what refers to it
		return c, nil
	})
	if err != nil {
		return err
	}
	return e.routes.apply(ctx, id) // which takes the route of one that is gone away
}

func (e *Engine) endpointEvent(ep rollout.Endpoint, by Caller, t rollout.EventType, paths []string) rollout.Event {
	return rollout.Event{
		At: e.Now(), ProjectID: ep.ProjectID, EndpointID: ep.ID, Type: t, Level: rollout.LevelInfo,
		Name: ep.Name, Actor: by.Name, Paths: paths, Message: strings.ReplaceAll(string(t), ".", " "),
	}
}

// QualifiedName is the inference model name of an endpoint: slug/name.
func (e *Engine) QualifiedName(ep rollout.Endpoint) string { return e.Project.Slug + "/" + ep.Name }
