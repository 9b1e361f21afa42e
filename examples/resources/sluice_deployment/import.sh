terraform import sluice_deployment.qwen25 ep_0123456789/dep_0123456789

# The id alone does as well; its endpoint is then looked for, which costs calls.
terraform import sluice_deployment.qwen25 dep_0123456789
