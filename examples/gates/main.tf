# What gates need of an endpoint's traffic. The rollout is there to be rehearsed:
#
#   sluice rehearse examples/gates --facts examples/gates/facts.yaml

terraform {
  required_providers {
    sluice = {
      source = "sluice-dev/sluice"
    }
  }
}

# Reads SLUICE_ENGINE_URL and SLUICE_API_KEY.
provider "sluice" {}

variable "window" {
  description = "How far back the gates look. The hosted platform takes 60s and more."
  type        = string
  default     = "300s"
}

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
    min_replicas = 4
    max_replicas = 4
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

resource "sluice_rollout" "qwen35" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.qwen25.id
  target_deployment_id = sluice_deployment.qwen35.id

  canary = {
    steps = [
      { traffic = 5 },
      { traffic = 25 },
      { traffic = 100 },
    ]
  }

  metrics = [
    # The candidate's p95 may be at most a quarter above what serves today.
    {
      name       = "router_latency"
      stat       = "PERCENTILE"
      percentile = 95
      window     = var.window

      regression_check = {
        direction              = "HIGHER_IS_WORSE"
        max_regression_percent = 25
      }
    },
    # And its p99 is below two seconds, at 100 % too.
    {
      name            = "router_latency"
      stat            = "PERCENTILE"
      percentile      = 99
      window          = var.window
      threshold_check = { operator = "LT", value = 2000 }
    },
    # At most one answer in a hundred is a 5xx.
    {
      name            = "router_error_rate"
      window          = var.window
      threshold_check = { operator = "LT", value = 0.01 }
    },
  ]
}

output "state" {
  value = sluice_rollout.qwen35.state
}
