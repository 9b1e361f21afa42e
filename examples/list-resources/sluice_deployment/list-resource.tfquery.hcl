# All deployments that serve a model, in any endpoint.
list "sluice_deployment" "qwen25" {
  provider = sluice

  config {
    model = "demo/qwen2.5-7b"
  }
}
