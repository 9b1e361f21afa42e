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
  canary               = { steps = [{ traffic = 30 }, { traffic = 100 }] }
}

output "state" {
  value = sluice_rollout.new.state
}

output "everything" {
  description = "Known and unknown parts."
  value = {
    name  = sluice_endpoint.chat.name
    id    = sluice_endpoint.chat.id
    sides = [sluice_deployment.old.name, sluice_deployment.new.id]
    wait  = sluice_rollout.new.wait
  }
}

output "journey" {
  value = sluice_rollout.new.journey
}

output "facts" {
  value = sluice_rollout.new.facts.strategy
}

output "summary" {
  value = "Way: ${sluice_rollout.new.summary}"
}

output "hidden" {
  value     = "secret"
  sensitive = true
}

output "number" {
  value = sluice_deployment.old.autoscaling.max_replicas * 2.5
}

output "nothing" {
  value = sluice_rollout.new.reason
}
