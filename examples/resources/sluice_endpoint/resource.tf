resource "sluice_endpoint" "chat" {
  name = "chat"
}

output "model" {
  description = "What clients send as model."
  value       = sluice_endpoint.chat.qualified_name
}
