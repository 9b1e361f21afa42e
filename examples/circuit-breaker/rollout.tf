# The change that a reviewer sees.

variable "window" {
  description = "How far back the circuit breaker looks. The hosted platform takes 60s and more."
  type        = string
  default     = "60s"
}

resource "sluice_rollout" "qwen35" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.qwen25.id
  target_deployment_id = sluice_deployment.qwen35.id

  canary = {
    steps = [
      { traffic = 50 },
      { traffic = 100 },
    ]
  }

  # Acts without asking anybody, so somebody answers for it. Any one rule is enough:
  # the target's share goes back to what it was, and the rollout waits for a person.
  circuit_breaker = {
    signed_by = "ana@example.org"

    rules = [
      {
        name            = "router_latency"
        stat            = "PERCENTILE"
        percentile      = 95
        window          = var.window
        threshold_check = { operator = "LT", value = 250 }
      },
      {
        name            = "router_error_rate"
        window          = var.window
        threshold_check = { operator = "LT", value = 0.05 }
      },
    ]
  }
}

output "rollout_id" {
  value = sluice_rollout.qwen35.id
}

output "state" {
  value = sluice_rollout.qwen35.state
}
