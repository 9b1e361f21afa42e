package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// DeploymentSpec is what a create asks for.
type DeploymentSpec struct {
	Name        string
	Model       string // as the caller wrote it
	RevisionID  string
	Config      string // cr_…; empty when the model has exactly one config
	Bounds      rollout.Bounds
	Autoscaling rollout.Autoscaling
	EnableLora  bool
}

// CreateDeployment makes a deployment that serves no traffic yet. With dry it only
// says whether it would.
func (e *Engine) CreateDeployment(ctx context.Context, by Caller, endpoint string, s DeploymentSpec, dry DryRun) (rollout.Deployment, error) {
	ep, err := e.Endpoint(ctx, endpoint)
	if err != nil {
		return rollout.Deployment{}, err
	}
	d, err := e.resolve(s)
	if err != nil {
		return rollout.Deployment{}, err
	}
	now := e.Now()
	d.ID, d.ProjectID, d.EndpointID, d.CreatedAt, d.UpdatedAt = e.NewID("dep"), ep.ProjectID, ep.ID, now, now
	if dry == OnlyValidate {
		return d, nil
	}
	if id, err := e.repeated(ctx, by); err != nil || id != "" {
		return first(err, func() (rollout.Deployment, error) { return e.Deployment(ctx, endpoint, id) })
	}
	ev := e.deploymentEvent(d, by, "deployment.created")
	err = e.Store.Commit(ctx, rollout.Change{Deployments: []rollout.Deployment{d}, Events: []rollout.Event{ev}, Answers: e.answer(by, d.ID)})
	if errors.Is(err, rollout.ErrExists) {
		if id, again := e.repeated(ctx, by); again != nil || id != "" { // the first try was under way
			return first(again, func() (rollout.Deployment, error) { return e.Deployment(ctx, endpoint, id) })
		}
		return rollout.Deployment{}, refuse(Exists, "deployment %q already exists on endpoint %s", s.Name, endpoint)
	}
	if errors.Is(err, rollout.ErrConflict) {
		return rollout.Deployment{}, missing("endpoint", endpoint) // deleted meanwhile
	}
	if err != nil {
		return rollout.Deployment{}, err
	}
	if err := e.ensure(ctx, d); err != nil {
		e.Logger.Error("ensure a new deployment", "deployment", d.ID, "error", err)
		e.routes.ensureLater(d.ID)
	}
	if err := e.routes.apply(ctx, ep.ID); err != nil {
		e.Logger.Error("route a new deployment", "deployment", d.ID, "error", err)
	}
	return e.Deployment(ctx, endpoint, d.ID)
}

// DryRun says whether a create only validates.
type DryRun int

// The two values of DryRun.
const (
	ForReal DryRun = iota
	OnlyValidate
)

// resolve finds the serving config of a deployment and checks its bounds.
func (e *Engine) resolve(s DeploymentSpec) (rollout.Deployment, error) {
	if err := checkName(s.Name); err != nil {
		return rollout.Deployment{}, err
	}
	config, err := e.configFor(s.Model, s.Config)
	if err != nil {
		return rollout.Deployment{}, err
	}
	if s.Model == "" {
		s.Model = config.Models[0]
	}
	if err := checkBounds(s.Bounds); err != nil {
		return rollout.Deployment{}, err
	}
	d := rollout.Deployment{
		Name: s.Name, Model: s.Model, ModelID: stableID("ml", s.Model), RevisionID: s.RevisionID,
		Config: config.ID, Hardware: config.Hardware, Bounds: s.Bounds, Autoscaling: s.Autoscaling, EnableLora: s.EnableLora,
	}
	if d.RevisionID == "" {
		d.RevisionID = stableID("rv", s.Model+"@"+config.ID)
	}
	return d, nil
}

func (e *Engine) configFor(model, id string) (rollout.ServingConfig, error) {
	if id != "" {
		c, ok := e.serving[id]
		switch {
		case !ok:
			return c, invalid("config", "config %q is not declared in the engine's configuration; declared: %s", id, e.configNames(func(rollout.ServingConfig) bool { return true }))
		case model != "" && !c.Serves(model):
			return c, invalid("config", "config %q does not serve model %q, only %s", id, model, strings.Join(c.Models, ", "))
		case model == "" && (len(c.Models) != 1 || c.Models[0] == "*"):
			return c, invalid("model", "config %q serves several models; name one", id)
		}
		return c, nil
	}
	if model == "" {
		return rollout.ServingConfig{}, invalid("model", "name a model, a config, or both")
	}
	var found []rollout.ServingConfig
	for _, c := range e.Serving {
		if c.Serves(model) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return rollout.ServingConfig{}, invalid("model", "no config of the engine serves model %q; declared configs: %s", model, e.configNames(func(rollout.ServingConfig) bool { return true }))
	case 1:
		return found[0], nil
	default:
		return rollout.ServingConfig{}, invalid("config", "several configs serve model %q; name one of %s", model, e.configNames(func(c rollout.ServingConfig) bool { return c.Serves(model) }))
	}
}

func (e *Engine) configNames(keep func(rollout.ServingConfig) bool) string {
	var names []string
	for _, c := range e.Serving {
		if keep(c) {
			names = append(names, c.ID)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// maxReplicas bounds what one deployment may ask for: a typing error must not
// start a million processes.
const maxReplicas = 10_000

func checkBounds(b rollout.Bounds) error {
	switch {
	case b.Min < 0 || b.Max < 0:
		return invalid("autoscaling.minReplicas", "replicas cannot be negative")
	case b.Max < b.Min:
		return invalid("autoscaling.maxReplicas", "maxReplicas %d is below minReplicas %d", b.Max, b.Min)
	case b.Min == 0 && b.Max > 0:
		return invalid("autoscaling.minReplicas", "minReplicas 0 goes with maxReplicas 0 only, which stops the deployment; a running one keeps at least 1")
	case b.Max > maxReplicas:
		return invalid("autoscaling.maxReplicas", "maxReplicas %d is above the limit of %d", b.Max, maxReplicas)
	}
	return nil
}

// stableID makes an id from content, so that the same model has the same id.
func stableID(prefix, content string) string {
	sum := sha256.Sum256([]byte(content))
	return prefix + "_" + hex.EncodeToString(sum[:10])
}

// Deployment reads one deployment of an endpoint.
func (e *Engine) Deployment(ctx context.Context, endpoint, id string) (rollout.Deployment, error) {
	d, err := e.Store.Deployment(ctx, id)
	if errors.Is(err, rollout.ErrNotFound) || (err == nil && d.EndpointID != endpoint) {
		return rollout.Deployment{}, missing("deployment", id)
	}
	return d, err
}

// DeploymentChange is what an update sets; nil leaves a field alone.
type DeploymentChange struct {
	Min, Max    *int
	Autoscaling *rollout.Autoscaling
}

// UpdateDeployment changes bounds and autoscaling. The bounds of a rollout's sides
// stay editable, but neither side can be stopped.
func (e *Engine) UpdateDeployment(ctx context.Context, by Caller, endpoint, id, etag string, set DeploymentChange) (rollout.Deployment, error) {
	var d rollout.Deployment
	err := e.update(ctx, func() (rollout.Change, error) {
		var err error
		if d, err = e.Deployment(ctx, endpoint, id); err != nil {
			return rollout.Change{}, err
		}
		if err := checkETag(etag, "deployment", id, d.Version); err != nil {
			return rollout.Change{}, err
		}
		if set.Min == nil && set.Max == nil && set.Autoscaling == nil {
			return rollout.Change{}, invalid("", "no fields to update")
		}
		old := d.Bounds
		d.Bounds = moved(old, set.Min, set.Max)
		if err := checkBounds(d.Bounds); err != nil {
			return rollout.Change{}, err
		}
		if d.Bounds.Stopped() {
			if err := e.checkStop(ctx, d); err != nil {
				return rollout.Change{}, err
			}
		}
		if set.Autoscaling != nil {
			d.Autoscaling = *set.Autoscaling
		}
		d.UpdatedAt = e.Now()
		return rollout.Change{Deployments: []rollout.Deployment{d}, Events: e.scaledEvents(old, d, by)}, nil
	})
	if err != nil {
		var refused *Error
		if !errors.As(err, &refused) {
			e.routes.ensureLater(id) // it may be stored for all that
		}
		return rollout.Deployment{}, err
	}
	if d, err = e.Deployment(ctx, endpoint, id); err != nil {
		return d, err
	}
	if err := e.ensureLatest(ctx, d); err != nil {
		e.routes.ensureLater(id)
		return d, fmt.Errorf("the change is stored, but the fleet cannot be told: %w", err)
	}
	e.pokeEndpoint(ctx, endpoint)
	return d, nil
}

// moved applies one-sided edits. A minimum alone carries the maximum along when it
// rises above it or stops the deployment.
func moved(b rollout.Bounds, low, high *int) rollout.Bounds {
	if low != nil {
		b.Min = *low
		if high == nil && (b.Max < b.Min || b.Min == 0) {
			b.Max = b.Min
		}
	}
	if high != nil {
		b.Max = *high
		if low == nil && b.Max < b.Min {
			b.Min = b.Max
		}
	}
	return b
}

func (e *Engine) checkStop(ctx context.Context, d rollout.Deployment) error {
	r, side, err := e.holder(ctx, d)
	if err != nil || side == "" {
		return err
	}
	return refuse(Precondition, "cannot stop deployment %s: it is the %s of rollout %s (%s); let it end, or cancel it", d.ID, side, r.ID, r.State)
}

// holder tells which open rollout a deployment is a side of, and which side.
func (e *Engine) holder(ctx context.Context, d rollout.Deployment) (rollout.Rollout, string, error) {
	ep, err := e.Endpoint(ctx, d.EndpointID)
	if err != nil || ep.ActiveRollout == "" {
		return rollout.Rollout{}, "", err
	}
	r, err := e.Store.Rollout(ctx, ep.ActiveRollout)
	if err != nil {
		return r, "", err
	}
	switch d.ID {
	case r.Spec.Source:
		return r, "source", nil
	case r.Spec.Target:
		return r, "target", nil
	}
	return r, "", nil
}

// DeleteDeployment removes a stopped deployment that has no weight in the split.
func (e *Engine) DeleteDeployment(ctx context.Context, by Caller, endpoint, id, etag string) error {
	err := e.update(ctx, func() (rollout.Change, error) {
		d, err := e.Deployment(ctx, endpoint, id)
		if err != nil {
			return rollout.Change{}, err
		}
		if err := checkETag(etag, "deployment", id, d.Version); err != nil {
			return rollout.Change{}, err
		}
		ep, err := e.Endpoint(ctx, endpoint)
		if err != nil {
			return rollout.Change{}, err
		}
		if err := e.checkDelete(ctx, ep, d); err != nil {
			return rollout.Change{}, err
		}
		ep.Split = slices.DeleteFunc(slices.Clone(ep.Split), func(w rollout.Weight) bool { return w.Deployment == id })
		return rollout.Change{
			Endpoints: []rollout.Endpoint{ep}, // so that no rollout is made of it meanwhile
			Delete:    []rollout.Ref{{Kind: rollout.KindDeployment, ID: id, Version: d.Version}},
			Events:    []rollout.Event{e.deploymentEvent(d, by, "deployment.deleted")},
		}, nil
	})
	if err != nil {
		return err
	}
	if err := e.routes.apply(ctx, endpoint); err != nil {
		return fmt.Errorf("the deployment is deleted, but the gateway cannot be told: %w", err)
	}
	e.Meter.Forget(id)
	return e.Fleet.Remove(ctx, id)
}

// checkDelete refuses to delete what a rollout, the split or the fleet still has.
func (e *Engine) checkDelete(ctx context.Context, ep rollout.Endpoint, d rollout.Deployment) error {
	if r, side, err := e.holder(ctx, d); err != nil {
		return err
	} else if side != "" {
		return refuse(Locked, "cannot delete deployment %s: it is the %s of rollout %s (%s); let it end, or cancel it", d.ID, side, r.ID, r.State)
	}
	if ep.WeightOf(d.ID) > 0 {
		return refuse(Precondition, "deployment %s has a weight in the traffic split of endpoint %s; take it out of the split first", d.ID, ep.ID)
	}
	status, err := e.Fleet.Observe(ctx, d.ID)
	if err != nil {
		return err
	}
	if !d.Bounds.Stopped() || status.Scheduled > 0 {
		return refuse(Precondition, "deployment %s is not stopped (%d replica(s) left); set minReplicas and maxReplicas to 0 and wait until it is STOPPED", d.ID, status.Scheduled)
	}
	return nil
}

// ensureLatest tells the fleet what a deployment's record says, and again if the record
// has changed meanwhile: of two edits at once, the later one is told last.
func (e *Engine) ensureLatest(ctx context.Context, d rollout.Deployment) error {
	for {
		if err := e.ensure(ctx, d); err != nil {
			return err
		}
		now, err := e.Store.Deployment(ctx, d.ID)
		if errors.Is(err, rollout.ErrNotFound) || err == nil && now.Bounds == d.Bounds {
			return nil
		}
		if err != nil {
			return err
		}
		d = now
	}
}

// ensure tells the fleet what a deployment's record says, unless the record is another
// engine's by now. To stop needs no config.
func (e *Engine) ensure(ctx context.Context, d rollout.Deployment) error {
	if err := e.Store.Held(ctx); err != nil {
		return err
	}
	c, ok := e.serving[d.Config]
	if !ok && d.Bounds.Stopped() {
		return e.Fleet.Remove(ctx, d.ID)
	}
	if !ok {
		return refuse(Precondition, "deployment %s names config %s, which the engine's configuration no longer declares", d.ID, d.Config)
	}
	return e.Fleet.Ensure(ctx, rollout.Workload{Deployment: d.ID, Model: d.Model, Config: c, Bounds: d.Bounds})
}

func (e *Engine) deploymentEvent(d rollout.Deployment, by Caller, t rollout.EventType) rollout.Event {
	return rollout.Event{
		At: e.Now(), ProjectID: d.ProjectID, EndpointID: d.EndpointID, Deployment: d.ID, Type: t,
		Level: rollout.LevelInfo, Name: d.Name, Actor: by.Name, Message: strings.ReplaceAll(string(t), ".", " "),
	}
}

// scaledEvents tells a change of bounds with both numbers.
func (e *Engine) scaledEvents(old rollout.Bounds, d rollout.Deployment, by Caller) []rollout.Event {
	if old == d.Bounds {
		ev := e.deploymentEvent(d, by, "deployment.updated")
		ev.Paths = []string{"autoscaling"}
		return []rollout.Event{ev}
	}
	ev := e.deploymentEvent(d, by, "deployment.scaled")
	ev.OldReplica, ev.NewReplica = &old.Min, &d.Bounds.Min
	ev.Paths = []string{"autoscaling.minReplicas", "autoscaling.maxReplicas"}
	ev.Message = fmt.Sprintf("replicas %d–%d → %d–%d", old.Min, old.Max, d.Bounds.Min, d.Bounds.Max)
	return []rollout.Event{ev}
}
