terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

variable "p95_budget" {
  type        = number
  description = "Percent that the candidate's p95 may lie above what serves today."
  validation {
    condition     = var.p95_budget >= 0
    error_message = "A budget is not negative."
  }
}

locals {
  ladder = [5, 20, 100]
}

# Written before what it refers to: the order follows from the references.
resource "sluice_rollout" "qwen35" {
  endpoint_id          = sluice_endpoint.chat.id
  target_deployment_id = sluice_deployment.qwen35.id

  canary = {
    steps         = [for p in local.ladder : { traffic = p }]
    step_interval = "10m"
  }

  metrics = [
    {
      name             = "router_latency"
      stat             = "METRIC_STAT_TYPE_PERCENTILE"
      percentile       = 95
      window           = "300s"
      regression_check = { direction = "HIGHER_IS_WORSE", max_regression_percent = var.p95_budget }
    },
    {
      name            = "router_error_rate"
      threshold_check = { operator = "LT", value = 0.01 }
    },
  ]

  timeouts = { create = "2h" }

  lifecycle {
    prevent_destroy = true
    postcondition {
      condition     = self.state == "COMPLETED"
      error_message = "parked"
    }
  }
}

resource "sluice_endpoint" "chat" {
  name = "chat"
}

resource "sluice_deployment" "qwen25" {
  endpoint_id            = sluice_endpoint.chat.id
  name                   = "qwen25"
  model                  = "demo/qwen2.5-7b"
  initial_traffic_weight = 1
  autoscaling            = { min_replicas = 3, max_replicas = 6 }
}

resource "sluice_deployment" "qwen35" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "qwen35"
  model       = "demo/qwen3.5-9b"
  config      = "cr_demo_good"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}

moved {
  from = sluice_rollout.old
  to   = sluice_rollout.qwen35
}

output "what_clients_send" {
  value = sluice_endpoint.chat.qualified_name
}

output "steps" {
  value = length(sluice_rollout.qwen35.canary.steps)
}
