terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

variable "regions" {
  type = map(object({ replicas = number, steps = list(number) }))
  default = {
    eu = { replicas = 1, steps = [50, 100] }
    us = { replicas = 2, steps = [25, 75, 100] }
  }
}

resource "sluice_endpoint" "chat" {
  for_each = var.regions
  name     = "chat-${each.key}"
}

resource "sluice_deployment" "old" {
  for_each               = var.regions
  endpoint_id            = sluice_endpoint.chat[each.key].id
  name                   = "old"
  model                  = "demo/qwen2.5-7b"
  autoscaling            = { min_replicas = each.value.replicas, max_replicas = each.value.replicas }
  initial_traffic_weight = 1
}

resource "sluice_deployment" "new" {
  for_each    = toset(["eu", "us"])
  endpoint_id = sluice_endpoint.chat[each.value].id
  name        = "new"
  model       = "demo/qwen3.5-9b"
  config      = "cr_demo_good"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}

resource "sluice_rollout" "new" {
  for_each             = { for region, r in var.regions : region => r if r.replicas > 1 }
  endpoint_id          = sluice_endpoint.chat[each.key].id
  source_deployment_id = sluice_deployment.old[each.key].id
  target_deployment_id = sluice_deployment.new[each.key].id
  canary               = { steps = [for percent in each.value.steps : { traffic = percent }] }
}

output "endpoints" {
  value = { for region, e in sluice_endpoint.chat : region => e.qualified_name }
}

output "rollouts" {
  value = keys(sluice_rollout.new)
}
