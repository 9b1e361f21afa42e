resource "sluice_endpoint" "chat" {
  name       = "chat"
  visibility = "private"
}

resource "sluice_deployment" "a" {
  endpoint_id = sluice_endpoint.chat.id
  nam         = "a"
  autoscaling = { min_replicas = 2, max_replicas = 1 }
}

resource "sluice_rollout" "r" {
  endpoint_id          = sluice_endpoint.chat.id
  target_deployment_id = sluice_deployment.a.id

  canary = {
    steps = [
      { traffic = 10 },
      { traffic = 5 },
      { traffic = 90 },
    ]
    step_interval = "ten minutes"
  }
  rolling = {}

  metrics = [{
    name             = "router_latency"
    stat             = "PERCENTIL"
    window           = "300s"
    regression_check = { direction = "HIGHER", max_regresion_percent = 5 }
  }]
}
