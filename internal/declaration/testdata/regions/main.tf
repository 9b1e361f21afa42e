locals {
  regions = { eu = 2, us = 4 }
}

resource "sluice_endpoint" "chat" {
  for_each = local.regions
  name     = "chat-${each.key}"
}

resource "sluice_deployment" "stable" {
  for_each    = local.regions
  endpoint_id = sluice_endpoint.chat[each.key].id
  name        = "stable"
  autoscaling = { min_replicas = each.value, max_replicas = each.value * 2 }
}

resource "sluice_deployment" "next" {
  for_each    = local.regions
  endpoint_id = sluice_endpoint.chat[each.key].id
  name        = "next"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}

resource "sluice_rollout" "next" {
  for_each             = toset(["eu"])
  endpoint_id          = sluice_endpoint.chat[each.key].id
  source_deployment_id = sluice_deployment.stable[each.key].id
  target_deployment_id = sluice_deployment.next[each.key].id
  rolling              = {}

  final_target_replicas = local.regions[each.key]
  wait                  = false
}
