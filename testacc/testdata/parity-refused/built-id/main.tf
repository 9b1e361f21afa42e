# refused: endpoint_id is made from an id that is not known yet

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
  endpoint_id = "${sluice_endpoint.chat.id}-x"
  name        = "old"
  model       = "demo/qwen2.5-7b"
  autoscaling = { min_replicas = 1, max_replicas = 1 }
}
