# A deployment that another configuration made.
data "sluice_deployment" "qwen25" {
  endpoint_id = data.sluice_endpoint.chat.id
  name        = "qwen25"
}

output "ready_replicas" {
  value = data.sluice_deployment.qwen25.ready_replicas
}
