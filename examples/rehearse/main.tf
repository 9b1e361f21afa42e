# The rollout that the platform published in September 2026, to be rehearsed before it
# touches anything:
#
#   sluice rehearse examples/rehearse --facts examples/rehearse/facts.yaml

terraform {
  required_providers {
    sluice = {
      source = "sluice-dev/sluice"
    }
  }
}

provider "sluice" {}

resource "sluice_endpoint" "chat" {
  name = "chat"
}

# What serves today.
resource "sluice_deployment" "qwen25" {
  endpoint_id            = sluice_endpoint.chat.id
  name                   = "qwen25"
  model                  = "demo/qwen2.5-7b"
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
    steps = [{ traffic = 10 }, { traffic = 50 }, { traffic = 100 }]
  }

  # The candidate's p95 may be at most a quarter above what serves today.
  metrics = [{
    name       = "router_latency"
    stat       = "PERCENTILE"
    percentile = 95
    window     = "300s"

    regression_check = {
      direction              = "HIGHER_IS_WORSE"
      max_regression_percent = 25
    }
  }]
}
