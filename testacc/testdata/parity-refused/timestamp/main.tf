# refused: Only Terraform can evaluate timestamp()

terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

resource "sluice_endpoint" "chat" {
  name = "chat-${timestamp()}"
}
