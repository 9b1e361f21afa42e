terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

variable "name" {
  type = string
}

variable "sides" {
  type = object({
    old = object({ model = string, low = number, high = optional(number, 3) })
    new = object({ model = string, config = optional(string), low = optional(number, 0) })
  })
}

variable "steps" {
  type    = list(number)
  default = [100]

  validation {
    condition     = var.steps[length(var.steps) - 1] == 100
    error_message = "The ladder ends at 100."
  }
}

variable "unused" {
  type     = string
  default  = null
  nullable = true
}

resource "sluice_endpoint" "chat" {
  name       = var.name
  visibility = "INTERNAL"
}

resource "sluice_deployment" "old" {
  endpoint_id            = sluice_endpoint.chat.id
  name                   = "old"
  model                  = var.sides.old.model
  autoscaling            = { min_replicas = var.sides.old.low, max_replicas = var.sides.old.high }
  initial_traffic_weight = "1"
}

resource "sluice_deployment" "new" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "new"
  model       = var.sides.new.model
  config      = var.sides.new.config
  autoscaling = { min_replicas = var.sides.new.low, max_replicas = var.sides.new.low }
}

resource "sluice_rollout" "new" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.old.id
  target_deployment_id = sluice_deployment.new.id
  canary               = { steps = [for t in var.steps : { traffic = t }] }
}
