terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

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

resource "sluice_rollout" "new" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.old.id
  target_deployment_id = sluice_deployment.new.id
  blue_green           = {}
}

output "state" {
  value = sluice_rollout.new.state
}
