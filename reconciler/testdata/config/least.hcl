engine {
  url         = "http://127.0.0.1:8080"
  api_key_env = "SLUICE_TEST_KEY"
}

repository "models" {
  url = "https://github.com/acme/models.git"
  forge "github" {
    token_env = "SLUICE_TEST_KEY"
  }
  stack "prod" {}
}
