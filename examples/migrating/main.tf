# What exists already, as it is.

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
  endpoint_id = sluice_endpoint.chat.id
  name        = "qwen25"
  model       = "demo/qwen2.5-7b"
  config      = "cr_demo_stable"

  autoscaling = {
    min_replicas = 1
    max_replicas = 1
  }
}

# The candidate: stopped and without traffic.
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
