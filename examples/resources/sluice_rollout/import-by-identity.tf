import {
  to = sluice_rollout.qwen35
  identity = {
    endpoint_id = "ep_0123456789"
    id          = "rol_0123456789"
  }
}
