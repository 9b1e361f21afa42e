# refused: Only Terraform can evaluate module "house"

terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

module "house" {
  source = "./house"
}
