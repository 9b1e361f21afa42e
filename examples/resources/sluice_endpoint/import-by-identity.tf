import {
  to = sluice_endpoint.chat
  identity = {
    id = "ep_0123456789"
  }
}
