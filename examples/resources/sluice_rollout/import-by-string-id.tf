import {
  to = sluice_rollout.qwen35
  id = "ep_0123456789/rol_0123456789"
}
