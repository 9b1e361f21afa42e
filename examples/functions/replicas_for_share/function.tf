# 10 % of what three replicas carry needs one.
output "first_step" {
  value = provider::sluice::replicas_for_share(3, 10)
}
