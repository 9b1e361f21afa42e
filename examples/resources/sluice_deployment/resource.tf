# Serves from the start.
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

# A candidate: no replica and no traffic until a rollout starts it.
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
