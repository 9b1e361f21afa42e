# What the reconciler's examples declare: what serves, and a candidate. The same folder is
# planned and applied by terraform and by sluice apply.
#
# Tested by testacc: TestTerraformAndSluicePlanTheSame, and by the quick start of
# docs/reconcile.md, which a test follows.

terraform {
  required_providers {
    sluice = {
      source = "sluice-dev/sluice"
    }
  }
}

# For terraform. The reconciler goes to the engine of its own configuration.
provider "sluice" {}

variable "window" {
  description = "How far back the gate looks. The hosted platform takes 60s and more."
  type        = string
  default     = "300s"
}

resource "sluice_endpoint" "chat" {
  name = "chat"
}

# What serves today.
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

# The candidate: stopped and without traffic until a rollout starts it.
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
