terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

# Ünïcode in comments, labels and texts – “quotes” too.
locals {
  größe = { ключ = "значение", emoji = "🚦" }
}

resource "sluice_endpoint" "gespräch" {
  name = "chat"
}

resource "sluice_deployment" "old" {
  endpoint_id            = sluice_endpoint.gespräch.id
  name                   = "old"
  model                  = "demo/qwen2.5-7b"
  autoscaling            = { min_replicas = 2, max_replicas = 4 }
  initial_traffic_weight = 1
}

resource "sluice_deployment" "new" {
  endpoint_id = sluice_endpoint.gespräch.id
  name        = "new"
  model       = "demo/qwen3.5-9b"
  config      = "cr_demo_good"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}

resource "sluice_rollout" "new" {
  endpoint_id          = sluice_endpoint.gespräch.id
  source_deployment_id = sluice_deployment.old.id
  target_deployment_id = sluice_deployment.new.id
  blue_green           = {}
  reason               = "Проверено: 👍 ${local.größe.emoji}\t\"ok\""
}

output "größe" {
  value = merge(local.größe, { länge = length(local.größe.ключ) })
}
