terraform {
  required_providers {
    sluice = {
      source = "sluice-dev/sluice"
    }
  }
}

# engine_url, api_key and project fall back to SLUICE_ENGINE_URL, SLUICE_API_KEY and
# SLUICE_PROJECT, then to TOGETHER_BASE_URL, TOGETHER_API_KEY and TOGETHER_PROJECT_ID.
provider "sluice" {
  engine_url = "http://127.0.0.1:8420"
}
