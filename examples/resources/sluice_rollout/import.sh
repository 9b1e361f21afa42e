terraform import sluice_rollout.qwen35 ep_0123456789/rol_0123456789

# The id alone does as well; its endpoint is then looked for, which costs calls.
terraform import sluice_rollout.qwen35 rol_0123456789
