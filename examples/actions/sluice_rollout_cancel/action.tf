# terraform apply -invoke=action.sluice_rollout_cancel.candidate
action "sluice_rollout_cancel" "candidate" {
  config {
    endpoint_id = sluice_rollout.candidate.endpoint_id
    rollout_id  = sluice_rollout.candidate.id
    reason      = "the candidate answers in the wrong language"
  }
}
