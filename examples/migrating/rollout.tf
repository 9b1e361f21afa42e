# What the script did, with what it could not: somebody asks at each step.

variable "pause" {
  description = "Wait after each step, as the script slept."
  type        = string
  default     = "10m"
}

variable "window" {
  description = "How far back the gates look. The hosted platform takes 60s and more."
  type        = string
  default     = "300s"
}

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
    step_interval = var.pause
  }

  # What one looked for on the dashboard.
  metrics = [
    {
      name            = "router_error_rate"
      window          = var.window
      threshold_check = { operator = "LT", value = 0.01 }
    },
    {
      name            = "router_latency"
      stat            = "AVG"
      window          = var.window
      threshold_check = { operator = "LT", value = 800 }
    },
  ]
}

output "state" {
  value = sluice_rollout.qwen35.state
}
