engine {
  ulr     = "https://engine.example.com"
  api_key = "sk-geheim"
}
repositry "models" {}
repository "models" {
  url      = "https://git.example.com/acme/models"
  interval = "2s"
  aproval  = "merge"
  drift    = "corect"
  forge "githup" {
    token_env = "SLUICE_TEST_KEY"
    permissions {
      resme  = ["role:write"]
      cancel = ["write", "role:writer", "role:none"]
    }
  }
  stack "prod" {
    folder     = 3
    var_files  = "prod.tfvars"
    variables  = { replicas = 3 }
    depends_on = [var.other]
  }
  stack = "x"
  interval {}
}
limits {
  fetches = 0
  files   = "many"
}
