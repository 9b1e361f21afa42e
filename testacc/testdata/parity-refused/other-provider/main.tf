# refused: Only Terraform can evaluate resource "random_pet" of another provider

terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

resource "random_pet" "name" {}

resource "sluice_endpoint" "chat" {
  name = random_pet.name.id
}
