output "endpoint" {
  value = provider::sluice::parse_rollout_id("ep_0123456789/rol_0123456789").endpoint_id
}
