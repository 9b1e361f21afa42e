import {
  to = sluice_traffic_split.chat
  identity = {
    endpoint_id = "ep_0123456789"
  }
}
