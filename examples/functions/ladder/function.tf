# The default canary of a source with four replicas.
output "canary" {
  value = provider::sluice::ladder("canary", null, 4, null)
}

# Own steps, to six replicas, with one replica left on the source at the end.
output "own_steps" {
  value = provider::sluice::ladder("canary", [10, 50, 100], 4, 6, 1)
}

# From a frozen pair of which the target carries 10 % already.
output "from_10_percent" {
  value = provider::sluice::ladder("canary", [50, 100], 4, 4, 0, 10)
}

# A rolling rollout takes one batch a replica.
output "batches" {
  value = length(provider::sluice::ladder("rolling", null, 4, null))
}
