# terraform apply -invoke=action.sluice_rollout_pause.candidate
action "sluice_rollout_pause" "candidate" {
  config {
    endpoint_id = sluice_rollout.candidate.endpoint_id
    rollout_id  = sluice_rollout.candidate.id
    reason      = "the on-call person looks at the p95"
  }
}
