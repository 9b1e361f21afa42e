# The way back after a cancel at 10 %: an ordinary rollout with the sides swapped, from
# the split that the cancel froze.
#
#   sluice rehearse examples/rehearse/reverse --facts examples/rehearse/reverse/facts.yaml

terraform {
  required_providers {
    sluice = {
      source = "sluice-dev/sluice"
    }
  }
}

provider "sluice" {}

variable "endpoint_id" {
  type    = string
  default = "ep_chat"
}

variable "qwen25_id" {
  type    = string
  default = "dep_qwen25"
}

variable "qwen35_id" {
  type    = string
  default = "dep_qwen35"
}

resource "sluice_rollout" "back" {
  endpoint_id          = var.endpoint_id
  source_deployment_id = var.qwen35_id
  target_deployment_id = var.qwen25_id
  blue_green           = {}
}
