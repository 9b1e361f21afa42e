# Whether anybody is moving this endpoint's traffic, and who serves how much.
data "sluice_endpoint" "chat" {
  name = "chat"
}

output "served" {
  description = "Set and actual shares; null when the engine does not tell."
  value       = data.sluice_endpoint.chat.serving
}

output "held_by" {
  value = try(data.sluice_endpoint.chat.active_rollout.rollout_id, null)
}
