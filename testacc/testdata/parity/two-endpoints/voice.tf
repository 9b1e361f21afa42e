
resource "sluice_endpoint" "voice" {
  name = "voice"
}

resource "sluice_deployment" "voice_old" {
  endpoint_id            = sluice_endpoint.voice.id
  name                   = "old"
  model                  = "demo/qwen2.5-7b"
  autoscaling            = { min_replicas = 2, max_replicas = 4 }
  initial_traffic_weight = 1
}

resource "sluice_deployment" "voice_new" {
  endpoint_id = sluice_endpoint.voice.id
  name        = "new"
  model       = "demo/qwen3.5-9b"
  config      = "cr_demo_good"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}

resource "sluice_rollout" "voice" {
  endpoint_id          = sluice_endpoint.voice.id
  source_deployment_id = sluice_deployment.voice_old.id
  target_deployment_id = sluice_deployment.voice_new.id
  blue_green           = {}
  depends_on           = [sluice_rollout.new]
}
