resource "sluice_rollout" "qwen35" {
  endpoint_id          = sluice_endpoint.chat.id
  target_deployment_id = sluice_deployment.qwen35.id # the source is the one that serves

  canary = {
    steps = [
      { traffic = 10 },
      { traffic = 50 },
      { traffic = 100 },
    ]
  }

  metrics = [{
    name       = "router_latency"
    stat       = "PERCENTILE"
    percentile = 95
    window     = "300s"

    regression_check = {
      direction              = "HIGHER_IS_WORSE"
      max_regression_percent = 25
    }
  }]
}
