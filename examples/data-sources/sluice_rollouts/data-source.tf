# Everything in the project that waits for a person.
data "sluice_rollouts" "parked" {
  states = ["PAUSED", "SYSTEM_PAUSED"]
}

output "parked" {
  value = [for r in data.sluice_rollouts.parked.rollouts : "${r.endpoint_id}/${r.id}"]
}
