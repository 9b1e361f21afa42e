# The way back after a cancel: an ordinary rollout with the two sides swapped, from
# the split that the cancel froze. One step, since what it goes back to has served
# before.
#
#   terraform -chdir=.. output -json | jq 'map_values(.value)' > reverse.auto.tfvars.json

terraform {
  required_providers {
    sluice = {
      source = "sluice-dev/sluice"
    }
  }
}

# Reads SLUICE_ENGINE_URL and SLUICE_API_KEY.
provider "sluice" {}

variable "endpoint_id" {
  description = "Endpoint that serves both."
  type        = string
}

variable "qwen25_id" {
  description = "Deployment to go back to."
  type        = string
}

variable "qwen35_id" {
  description = "Deployment to leave."
  type        = string
}

resource "sluice_rollout" "back" {
  endpoint_id          = var.endpoint_id
  source_deployment_id = var.qwen35_id
  target_deployment_id = var.qwen25_id
  blue_green           = {}

  # Back to the size of before; left out it would be both sides' count together.
  final_target_replicas = 1
}

output "rollout_id" {
  value = sluice_rollout.back.id
}

output "state" {
  value = sluice_rollout.back.state
}
