# The change that a pull request brings: a canary with a gate.

resource "sluice_rollout" "qwen35" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.qwen25.id
  target_deployment_id = sluice_deployment.qwen35.id

  canary = {
    steps = [
      { traffic = 10 },
      { traffic = 50 },
      { traffic = 100 },
    ]
  }

  # The candidate's p95 may be at most a quarter above what serves today.
  metrics = [{
    name       = "router_latency"
    stat       = "PERCENTILE"
    percentile = 95
    window     = var.window

    regression_check = {
      direction              = "HIGHER_IS_WORSE"
      max_regression_percent = 25
    }
  }]
}
