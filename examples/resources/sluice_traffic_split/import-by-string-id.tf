import {
  to = sluice_traffic_split.chat
  id = "ep_0123456789"
}
