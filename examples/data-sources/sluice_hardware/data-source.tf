data "sluice_hardware" "all" {}

locals {
  # Types with room for two more replicas, the cheapest first.
  fitting = [for t in data.sluice_hardware.all.types : t if coalesce(t.free, 0) >= 2]
  prices  = sort([for t in local.fitting : format("%08d %s", t.price_cents_per_hour, t.id)])
}

output "cheapest" {
  value = one(slice([for p in local.prices : split(" ", p)[1]], 0, min(1, length(local.prices))))
}
