resource "sluice_endpoint" "chat" {
  name = local.name
}

locals {
  name = "chat-${sluice_deployment.a.name}"
}

resource "sluice_deployment" "a" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "a"
  autoscaling = { min_replicas = 1, max_replicas = 1 }
}
