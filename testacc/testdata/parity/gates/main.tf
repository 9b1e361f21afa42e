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
  endpoint_id            = sluice_endpoint.chat.id
  name                   = "old"
  model                  = "demo/qwen2.5-7b"
  autoscaling            = { min_replicas = 2, max_replicas = 4 }
  initial_traffic_weight = 1
}

resource "sluice_deployment" "new" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "new"
  model       = "demo/qwen3.5-9b"
  config      = "cr_demo_good"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}

resource "sluice_rollout" "new" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.old.id
  target_deployment_id = sluice_deployment.new.id

  canary = {
    steps         = [{ traffic = 5, replicas = 1 }, { traffic = 60 }, { traffic = 100 }]
    step_interval = "200ms"
  }

  metrics = [
    { name = "router_latency", stat = "METRIC_STAT_TYPE_PERCENTILE", percentile = 99, window = "1s", threshold_check = { operator = "LTE", value = 900.5 } },
    { name = "router_latency", stat = "AVG", window = "700ms", regression_check = { direction = "HIGHER_IS_WORSE", max_regression_percent = 12.5 } },
    { name = "router_error_rate", window = "0m1s", threshold_check = { operator = "THRESHOLD_OPERATOR_LT", value = 0.02 } },
    { name = "router_latency", stat = "PERCENTILE", percentile = 50, window = "1s", regression_check = { direction = "REGRESSION_DIRECTION_HIGHER_IS_WORSE" } },
  ]
}

output "state" {
  value = sluice_rollout.new.state
}
