terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

locals {
  sizes   = { small = 1, large = 3 }
  largest = max(values(local.sizes)...)
  steps   = sort([for p in setunion([50], toset([100, 20])) : format("%03d", p)])
  tags    = merge({ team = "a" }, { tier = "gold" })
  name    = lower(replace(join("-", ["Chat", local.tags.team]), "/[^a-z-]/i", ""))
  pairs   = flatten([for k, v in local.sizes : [k, tostring(v)]])
  chosen  = lookup(local.sizes, "medium", 2)
}

resource "sluice_endpoint" "chat" {
  name = local.name
}

resource "sluice_deployment" "old" {
  endpoint_id            = sluice_endpoint.chat.id
  name                   = trimsuffix("old-x", "-x")
  model                  = "demo/qwen2.5-7b"
  autoscaling            = { min_replicas = min(local.chosen, 5), max_replicas = ceil(local.largest * 1.5) }
  initial_traffic_weight = 1
}

resource "sluice_deployment" "new" {
  endpoint_id = sluice_endpoint.chat.id
  name        = substr("newest", 0, 3)
  model       = "demo/qwen3.5-9b"
  config      = coalesce("", "cr_demo_good")
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}

resource "sluice_rollout" "new" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.old.id
  target_deployment_id = sluice_deployment.new.id
  canary               = { steps = [for p in local.steps : { traffic = tonumber(p) }], step_interval = "${2 * 500}ms" }
}

output "pairs" {
  value = local.pairs
}

output "encoded" {
  value = jsonencode({ name = local.name, sizes = local.sizes, when = can(local.sizes.huge) })
}

output "hash" {
  value = sha256(local.name)
}
