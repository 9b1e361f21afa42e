package reconciler

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// blocked are the changes that cannot be made now, by their reasons.
func blocked(todo []planning.Change) []Wait {
	var out []Wait
	for _, c := range todo {
		if c.Blocked == "" {
			continue
		}
		w := Wait{For: ForPerson, What: c.Address.String() + ": " + c.Blocked}
		if c.BlockedBy != "" {
			w.For = ForRollout
		}
		out = append(out, w)
	}
	return out
}

// ready reports what one change waits for; the zero Wait for nothing.
func (p *stackPass) ready(ctx context.Context, c planning.Change) (Wait, error) {
	if w := blocked([]planning.Change{c}); len(w) > 0 {
		return w[0], nil
	}
	switch {
	case c.Action == planning.Delete && c.Protected:
		return Wait{For: ForPerson, What: c.Address.String() + " is protected by prevent_destroy and is not declared any more"}, nil
	case c.Kind == declaration.RolloutKind && (c.Action == planning.Create || c.Action == planning.Replace):
		return p.sidesReady(c), nil
	}
	return Wait{}, ctx.Err()
}

// sidesReady waits for the replicas of deployments that ask to be waited for, before a
// rollout moves traffic between them.
func (p *stackPass) sidesReady(c planning.Change) Wait {
	d := c.Declared.Rollout
	if d == nil {
		return Wait{}
	}
	for _, side := range []declaration.Link{d.Source, d.Target} {
		dep, ok := p.sideOf(side)
		if !ok || dep.Declared.Deployment == nil || !dep.Declared.Deployment.WaitReady.Value || dep.ID == "" {
			continue
		}
		if w := p.replicas(dep); w.For != "" {
			return w
		}
	}
	return Wait{}
}

// sideOf finds the declared deployment of a rollout's side, by reference or by id: a
// reference to what stands already is an id.
func (p *stackPass) sideOf(side declaration.Link) (planning.Change, bool) {
	if side.To != nil {
		return p.plan.changes.Find(side.To.Address.String())
	}
	i := slices.IndexFunc(p.plan.changes.List, func(c planning.Change) bool { return side.ID != "" && c.ID == side.ID })
	if i < 0 {
		return planning.Change{}, false
	}
	return p.plan.changes.List[i], true
}

// foreign are the endpoints of this stack that somebody else reconciles, also while there
// is nothing to write: to be in step with what another one owns is an accident.
func (p *stackPass) foreign() []Wait {
	var out []Wait
	for _, e := range p.plan.changes.Standing.Endpoints {
		if e.Owner != "" {
			out = append(out, Wait{For: ForOwner, What: fmt.Sprintf("endpoint %s belongs to %s; two owners would undo each other's work; when that one is gone: sluice reconcile release %[1]s --reason WHY", planning.BareName(e.Name), inert(e.Owner))})
		}
	}
	return out
}

// nothingThere keeps a stack whose folder has no file from looking like one whose wishes
// are fulfilled: the folder may be mistyped, moved or lost. Where prune is on, a stack that
// has something asks for an approval instead.
func (p *stackPass) nothingThere() []Wait {
	if len(p.folder.Files) > 0 || p.config.Prune.Mode == PruneOn && p.s.things() > 0 {
		return nil
	}
	hint := "nor is one anywhere among the watched paths"
	if len(p.folder.Elsewhere) > 0 {
		hint = "among the watched paths there are some in " + joined(p.folder.Elsewhere)
	}
	text := fmt.Sprintf("there is nothing to apply: no *.tf file is in %s at commit %s; %s", path.Clean(p.c.Folder), short(p.folder.Commit.ID), hint)
	if p.s.things() > 0 {
		text += ". What the stack has stays as it is; name its folder in the stack block, or take the stack out of the configuration"
	}
	return []Wait{{For: ForSource, What: text}}
}

// starting waits for the deployments that a run has made, where they ask to be waited for:
// what depends on this stack begins when they serve.
func (p *stackPass) starting(run *runRecord) []Wait {
	var out []Wait
	for _, c := range p.plan.changes.List {
		d := c.Declared.Deployment
		if d == nil || !d.WaitReady.Value || !slices.ContainsFunc(run.Done, func(x doneChange) bool { return x.Action == planning.Create && x.Address == c.Address.String() }) {
			continue
		}
		if w := p.replicas(c); w.For != "" {
			out = append(out, w)
		}
	}
	return out
}

// replicas waits for those that a deployment's bounds ask for.
func (p *stackPass) replicas(c planning.Change) Wait {
	for _, e := range p.plan.changes.Standing.Endpoints {
		for _, d := range e.All {
			if d.ID != c.ID || d.Autoscaling.MinReplicas == nil {
				continue
			}
			want := *d.Autoscaling.MinReplicas
			if want > 0 && d.Status.ReadyReplicas >= want && strings.HasSuffix(d.Status.State, "_SCALING") {
				return Wait{For: ForReady, What: fmt.Sprintf("%s is scaling", c.Address)}
			}
			if d.Status.ReadyReplicas < want {
				return Wait{For: ForReady, What: fmt.Sprintf("%s: %d of %s ready", c.Address, d.Status.ReadyReplicas, planning.Count(want, "replica"))}
			}
		}
	}
	return Wait{}
}
