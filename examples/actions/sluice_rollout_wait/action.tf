# Shows each change while it waits:
# terraform apply -invoke=action.sluice_rollout_wait.candidate
action "sluice_rollout_wait" "candidate" {
  config {
    endpoint_id = sluice_rollout.candidate.endpoint_id
    rollout_id  = sluice_rollout.candidate.id
    want        = ["COMPLETED"]
    timeout     = "3h"
  }
}
