# Makes a pipeline red when the rollout did not complete, without tainting it.
data "sluice_rollout_gate" "qwen35" {
  endpoint_id = sluice_rollout.qwen35.endpoint_id
  rollout_id  = sluice_rollout.qwen35.id
  want        = ["COMPLETED"]

  depends_on = [sluice_rollout.qwen35]
}
