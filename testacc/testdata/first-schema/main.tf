# A canary that completes: the candidate is as fast as what it replaces.

terraform {
  required_providers {
    sluice = {
      source = "sluice-dev/sluice"
    }
  }
}

# Reads SLUICE_ENGINE_URL and SLUICE_API_KEY.
provider "sluice" {}

resource "sluice_endpoint" "chat" {
  name = "chat"
}

# What serves today.
resource "sluice_deployment" "qwen25" {
  endpoint_id            = sluice_endpoint.chat.id
  name                   = "qwen25"
  model                  = "demo/qwen2.5-7b"
  config                 = "cr_demo_stable"
  initial_traffic_weight = 1

  autoscaling = {
    min_replicas = 1
    max_replicas = 1
  }
}

# The candidate: stopped and without traffic until the rollout starts it.
resource "sluice_deployment" "qwen35" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "qwen35"
  model       = "demo/qwen3.5-9b"
  config      = "cr_demo_good"

  autoscaling = {
    min_replicas = 0
    max_replicas = 0
  }
}

output "endpoint_id" {
  value = sluice_endpoint.chat.id
}

output "model" {
  description = "What clients send as model."
  value       = sluice_endpoint.chat.qualified_name
}

output "qwen25_id" {
  value = sluice_deployment.qwen25.id
}

output "qwen35_id" {
  value = sluice_deployment.qwen35.id
}
# The change that a reviewer sees.

variable "window" {
  description = "How far back the gate looks. The hosted platform takes 60s and more."
  type        = string
  default     = "300s"
}

resource "sluice_rollout" "qwen35" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.qwen25.id
  target_deployment_id = sluice_deployment.qwen35.id

  canary = {
    steps = [
      { traffic = 10 },
      { traffic = 50 },
      { traffic = 100 },
    ]
  }

  # The candidate's p95 may be at most a quarter above what serves today.
  metrics = [{
    name       = "router_latency"
    stat       = "PERCENTILE"
    percentile = 95
    window     = var.window

    regression_check = {
      direction              = "HIGHER_IS_WORSE"
      max_regression_percent = 25
    }
  }]
}

output "rollout_id" {
  value = sluice_rollout.qwen35.id
}

output "state" {
  value = sluice_rollout.qwen35.state
}
