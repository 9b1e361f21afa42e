# What the rollout would find now: read once at plan and kept in the plan file, so
# that a policy judges what a person saw.
data "sluice_rollout_preview" "qwen35" {
  endpoint_id          = sluice_endpoint.chat.id
  target_deployment_id = sluice_deployment.qwen35.id

  canary = {
    steps = [{ traffic = 10 }, { traffic = 50 }, { traffic = 100 }]
  }
}

check "fits_now" {
  assert {
    condition     = data.sluice_rollout_preview.qwen35.feasible != false
    error_message = coalesce(data.sluice_rollout_preview.qwen35.shortfall, "not feasible")
  }
}
