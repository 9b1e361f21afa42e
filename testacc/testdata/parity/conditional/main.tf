terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

variable "rollout" {
  type    = bool
  default = true
}

variable "extra" {
  type    = bool
  default = false
}

resource "sluice_endpoint" "chat" {
  name = "chat"
}

resource "sluice_deployment" "old" {
  endpoint_id            = sluice_endpoint.chat.id
  name                   = "old"
  model                  = "demo/qwen2.5-7b"
  autoscaling            = { min_replicas = 2, max_replicas = 4 }
  initial_traffic_weight = 1
}

resource "sluice_deployment" "new" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "new"
  model       = "demo/qwen3.5-9b"
  config      = "cr_demo_good"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}

resource "sluice_deployment" "extra" {
  count       = var.extra ? 1 : 0
  endpoint_id = sluice_endpoint.chat.id
  name        = "extra"
  model       = "demo/qwen2.5-7b"
  autoscaling = { min_replicas = 1, max_replicas = 1 }
}

resource "sluice_rollout" "new" {
  count                = var.rollout ? 1 : 0
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.old.id
  target_deployment_id = sluice_deployment.new.id
  canary               = var.extra ? null : { steps = [{ traffic = 25 }, { traffic = 100 }] }
  blue_green           = var.extra ? {} : null
}

output "extra" {
  value = one(sluice_deployment.extra[*].name)
}

output "rollout" {
  value = try(sluice_rollout.new[0].summary, "none")
}
