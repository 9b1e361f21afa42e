# terraform apply -invoke=action.sluice_rollout_resume.candidate
action "sluice_rollout_resume" "candidate" {
  config {
    endpoint_id = sluice_rollout.candidate.endpoint_id
    rollout_id  = sluice_rollout.candidate.id
  }
}
