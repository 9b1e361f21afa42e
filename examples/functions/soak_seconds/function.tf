# 3 minutes asked; a window of 5 minutes needs 390 seconds.
output "wait" {
  value = provider::sluice::soak_seconds("3m", ["300s", "60s"])
}

# The same on an engine that can read a request after 10 seconds.
output "wait_of_a_faster_engine" {
  value = provider::sluice::soak_seconds("3m", ["300s", "60s"], "10s")
}
