# Who edited the split by hand since the start of the month?
data "sluice_events" "edits" {
  endpoint_id = sluice_endpoint.chat.id
  types       = ["endpoint.updated"]
  since       = "2026-09-01T00:00:00Z"
  limit       = 20
}

output "edits" {
  value = [for e in data.sluice_events.edits.events : "${e.created_at} ${coalesce(e.actor, "somebody")}" if contains(coalesce(e.paths, []), "trafficSplit")]
}
