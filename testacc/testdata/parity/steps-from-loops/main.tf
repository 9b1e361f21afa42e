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

locals {
  gates = { router_latency = 900, router_error_rate = 0.1 }
}

resource "sluice_rollout" "new" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.old.id
  target_deployment_id = sluice_deployment.new.id

  canary = {
    steps = concat([for i in range(1, 4) : { traffic = i * 20, replicas = i }], [{ traffic = 100, replicas = null }])
  }

  metrics = [for name, most in local.gates : {
    name            = name
    stat            = name == "router_latency" ? "AVG" : null
    window          = "1s"
    threshold_check = { operator = "LT", value = most }
  }]
}
