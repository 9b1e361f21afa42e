import {
  to = sluice_deployment.qwen25
  identity = {
    endpoint_id = "ep_0123456789"
    id          = "dep_0123456789"
  }
}
