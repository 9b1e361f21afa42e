# All rollouts that wait for a person.
list "sluice_rollout" "parked" {
  provider         = sluice
  include_resource = true

  config {
    states = ["PAUSED", "SYSTEM_PAUSED"]
  }
}
