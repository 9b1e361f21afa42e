# A deployment that something else made on this endpoint.
data "sluice_deployment" "qwen25" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "qwen25"
}

output "ready_replicas" {
  value = data.sluice_deployment.qwen25.ready_replicas
}
