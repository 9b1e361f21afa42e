name = "chat"
