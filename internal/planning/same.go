package planning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// StateOf is a rollout's state without its prefix.
func StateOf(r api.Rollout) rollout.State {
	return rollout.State(strings.TrimPrefix(r.State, api.PrefixRolloutState))
}

// IsOver reports whether a rollout in this state, with its prefix, is over. ABORTED is
// the legacy end of a hosted engine.
func IsOver(state string) bool {
	short := rollout.State(strings.TrimPrefix(state, api.PrefixRolloutState))
	return short.Terminal() || short == "ABORTED"
}

// SameRollout reports whether a rollout is the one that a spec asks for: by the digest
// that it carries, or, where the engine keeps none, by what it shows.
func SameRollout(r api.Rollout, spec api.RolloutSpec, digest string) bool {
	if r.Sluice != nil && r.Sluice.Digest != "" {
		return r.Sluice.Digest == digest
	}
	if r.TargetDeploymentID != spec.TargetDeploymentID || (spec.SourceDeploymentID != "" && r.SourceDeploymentID != spec.SourceDeploymentID) {
		return false
	}
	if r.Sluice != nil && r.Sluice.Spec != nil {
		told := *r.Sluice.Spec
		if spec.SourceDeploymentID == "" {
			told.SourceDeploymentID = ""
		}
		return DigestOf(told) == DigestOf(spec)
	}
	asked, _ := wire.SpecFromAPI(spec)
	return strings.TrimPrefix(r.Strategy, api.PrefixStrategy) == string(asked.Strategy) && sameLadder(r, asked)
}

func sameLadder(r api.Rollout, s rollout.Spec) bool {
	if len(s.Steps) == 0 {
		return true
	}
	if len(s.Steps) != len(r.Status.Steps) {
		return false
	}
	for i, st := range s.Steps {
		if r.Status.Steps[i].TargetTrafficPercent != st.Percent {
			return false
		}
	}
	return true
}

// Newest is the rollout that was made last.
func Newest(all []api.Rollout) api.Rollout {
	var newest api.Rollout
	for _, r := range all {
		if r.CreatedAt.After(newest.CreatedAt.Time) {
			newest = r
		}
	}
	return newest
}

// EndedAs finds the newest rollout of an endpoint when it is of this very spec and over
// in a way that a create must not repeat. A CANCELED one is a person's decision about the
// spec: no door starts it again by itself. A COMPLETED one whose target serves alone is
// what a door made that has forgotten it.
func EndedAs(ep api.Endpoint, all []api.Rollout, spec api.RolloutSpec, digest string) (api.Rollout, bool) {
	newest := Newest(all)
	over := StateOf(newest) == rollout.Canceled || StateOf(newest) == rollout.Completed && ServesAlone(ep, spec.TargetDeploymentID)
	return newest, over && SameRollout(newest, spec, digest)
}

// Made finds the newest rollout of a spec among an endpoint's, in whatever state. A
// CANCELED one is a person's decision about the spec, and a COMPLETED one has been made:
// neither is made again by a door that keeps no state, also when a later rollout has moved
// the traffic back. An engine that keeps no digests shows too little to tell an old rollout
// of the same ladder apart: of its finished ones only what EndedAs finds counts.
func Made(ep api.Endpoint, all []api.Rollout, spec api.RolloutSpec, digest string) (api.Rollout, bool) {
	var same []api.Rollout
	for _, live := range all {
		certain := live.Sluice != nil && (live.Sluice.Digest != "" || live.Sluice.Spec != nil)
		if (certain || !IsOver(live.State)) && SameRollout(live, spec, digest) {
			same = append(same, live)
		}
	}
	if len(same) > 0 {
		return Newest(same), true
	}
	return EndedAs(ep, all, spec, digest)
}

// ServesAlone reports whether a deployment is the only one with a weight.
func ServesAlone(ep api.Endpoint, id string) bool {
	return WeightIn(ep.TrafficSplit, id) > 0 && !slices.ContainsFunc(ep.TrafficSplit, func(w api.TrafficWeight) bool {
		return w.Weight > 0 && w.DeploymentID != id
	})
}

// WeightIn is a deployment's weight in a split; 0 when it has none.
func WeightIn(split []api.TrafficWeight, id string) float64 {
	for _, w := range split {
		if w.DeploymentID == id {
			return w.Weight
		}
	}
	return 0
}

// ShareIn follows the split's rule: weight times ready replicas over the sum.
func ShareIn(split []api.TrafficWeight, all []api.Deployment, id string) float64 {
	own, sum := 0.0, 0.0
	for _, d := range all {
		part := WeightIn(split, d.ID) * float64(d.Status.ReadyReplicas)
		if sum += part; d.ID == id {
			own = part
		}
	}
	if sum == 0 {
		return 0
	}
	return own / sum
}

// SourceIn finds the one deployment of an endpoint that serves and is not the target.
func SourceIn(ep api.Endpoint, target string) (string, error) {
	var serving []string
	for _, w := range ep.TrafficSplit {
		if w.Weight > 0 && w.DeploymentID != target {
			serving = append(serving, w.DeploymentID)
		}
	}
	switch len(serving) {
	case 1:
		return serving[0], nil
	case 0:
		return "", fmt.Errorf("no deployment of endpoint %s other than the target has a weight in its split, so there is no traffic to move", ep.ID)
	}
	return "", fmt.Errorf("several deployments of endpoint %s serve (%s); name the source", ep.ID, strings.Join(serving, ", "))
}

// HeldBy names the rollout that holds an endpoint's slot and the lock of its split.
func HeldBy(endpoint string, r api.Rollout) string {
	percent := 0
	if r.CurrentTrafficPercent != nil {
		percent = *r.CurrentTrafficPercent
	}
	return fmt.Sprintf("Endpoint %s is held by rollout %s (%s, %s → %s, %d%% on the target).",
		endpoint, r.ID, StateOf(r), r.SourceDeploymentID, r.TargetDeploymentID, percent)
}
