import {
  to = sluice_endpoint.chat
  id = "ep_0123456789"
}
