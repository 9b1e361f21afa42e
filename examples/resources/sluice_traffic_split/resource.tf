# The whole split of an endpoint, by hand. To move live traffic use a sluice_rollout.
resource "sluice_traffic_split" "chat" {
  endpoint_id = sluice_endpoint.chat.id

  weights = {
    (sluice_deployment.qwen25.id) = 1
  }
}
