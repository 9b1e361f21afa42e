# The rollout that holds the endpoint, if one does.
data "sluice_rollout" "active" {
  endpoint_id = sluice_endpoint.chat.id
}

check "nobody_waits" {
  assert {
    condition     = data.sluice_rollout.active.state != "SYSTEM_PAUSED"
    error_message = "Rollout ${coalesce(data.sluice_rollout.active.id, "?")} waits for a person."
  }
}
