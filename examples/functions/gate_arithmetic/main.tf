# The arithmetic of waits and replicas, without an engine: terraform plan prints it.

terraform {
  required_providers {
    sluice = {
      source = "sluice-dev/sluice"
    }
  }
}

# Seconds that a step waits in effect, by the longest window of its gates.
output "waits" {
  value = {
    "3m asked, no gate"             = provider::sluice::soak_seconds("3m", [])
    "3m asked, window 60s"          = provider::sluice::soak_seconds("3m", ["60s"])
    "3m asked, windows 300s, 60s"   = provider::sluice::soak_seconds("3m", ["300s", "60s"])
    "10m asked, window 300s"        = provider::sluice::soak_seconds("10m", ["300s"])
    "3m asked, window 300s, lag 5s" = provider::sluice::soak_seconds("3m", ["300s"], "5s")
  }
}

# The rungs of examples/gates, from four replicas.
output "rungs" {
  value = [for r in provider::sluice::ladder("canary", [5, 25, 100], 4, null) : "${r.percent} %: target ${r.target_replicas}, source ${r.source_replicas}"]
}
