# All endpoints whose name begins with chat.
list "sluice_endpoint" "chat" {
  provider = sluice

  config {
    name_prefix = "chat"
  }
}
