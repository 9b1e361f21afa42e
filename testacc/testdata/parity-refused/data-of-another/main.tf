# refused: Only Terraform can evaluate data "external" of another provider

terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

data "external" "name" {
  program = ["true"]
}
