# A canary with a circuit breaker: the candidate is far too slow, and its traffic goes back
# to the source by itself, which has kept its full size.

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
  config      = "cr_demo_candidate"

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
