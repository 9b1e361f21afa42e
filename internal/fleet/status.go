package fleet

import (
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Status is what the fleet shows of a deployment; zero for an unknown one.
func (r *Roster) Status(name string) rollout.FleetStatus {
	d := r.deps[name]
	if d == nil {
		return rollout.FleetStatus{Message: "No replicas"}
	}
	s := rollout.FleetStatus{Desired: d.desired, Failures: d.failures, LastFailure: d.last, Replicas: make([]rollout.Replica, 0, len(d.replicas))}
	for _, e := range d.replicas {
		s.Replicas = append(s.Replicas, e.copy())
		if e.hardware != "" {
			s.Scheduled++
		}
		switch e.State {
		case rollout.ReplicaPending:
			s.Unplaced++
		case rollout.ReplicaReady:
			s.Ready++
		case rollout.ReplicaDraining:
			s.Draining++
		case rollout.ReplicaStarting, rollout.ReplicaFailed:
		}
	}
	s.Message = message(s)
	return s
}

// message is the one line for a person: the first bad news, else what goes on.
func message(s rollout.FleetStatus) string {
	starting := false
	for _, rep := range s.Replicas {
		switch rep.State {
		case rollout.ReplicaPending:
			return rep.Message
		case rollout.ReplicaFailed:
			return fmt.Sprintf("Replica %s failed: %s", rep.ID, rep.Message)
		case rollout.ReplicaStarting:
			starting = true
		case rollout.ReplicaReady, rollout.ReplicaDraining:
		}
	}
	switch {
	case starting:
		return "Starting replicas"
	case s.Draining > 0 && s.Desired == 0:
		return "Stopping replicas"
	case s.Draining > 0:
		return "Scaling down"
	case s.Desired == 0:
		return "No replicas"
	default:
		return "All replicas ready"
	}
}
