import {
  to = sluice_deployment.qwen25
  id = "ep_0123456789/dep_0123456789"
}
