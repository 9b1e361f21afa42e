# refused: Only Terraform can evaluate action "sluice_rollout_pause.candidate"

terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}

provider "sluice" {}

action "sluice_rollout_pause" "candidate" {
  config {
    endpoint_id = "ep_1"
    rollout_id  = "rol_1"
  }
}
