terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

resource "sluice_endpoint" "chat" {
  count = 2
  name  = "chat-${count.index}"
}

resource "sluice_deployment" "old" {
  count                  = length(sluice_endpoint.chat)
  endpoint_id            = sluice_endpoint.chat[count.index].id
  name                   = format("old-%02d", count.index + 1)
  model                  = "demo/qwen2.5-7b"
  autoscaling            = { min_replicas = count.index + 1, max_replicas = (count.index + 1) * 2 }
  initial_traffic_weight = 1
}

output "names" {
  value = sluice_deployment.old[*].name
}

output "ids" {
  value = sluice_deployment.old[*].id
}
