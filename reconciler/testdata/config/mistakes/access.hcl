engine {
  url = "https://user:geheim@engine.example.com"
}
repository "ssh" {
  url = "git@git.example.com:acme/a.git"
  stack "s" {}
}
repository "unpinned" {
  url = "ssh://git@git.example.com/acme/b.git"
  auth { ssh_agent = true }
  stack "s" {}
}
repository "local" {
  url = "/srv/git/models"
  stack "s" {}
}
repository "file" {
  url = "file:///srv/git/models"
  stack "s" {}
}
repository "clear" {
  url = "http://git.example.com/acme/c.git"
  stack "s" {}
}
repository "literal" {
  url = "https://robot:geheim@git.example.com/acme/d.git"
  auth {
    token    = "ghp_geheim"
    username = "robot"
  }
  stack "s" {}
}
repository "both" {
  url = "https://git.example.com/acme/e.git"
  auth {
    token_env = "SLUICE_TEST_KEY"
    github_app { id = 1 }
    known_hosts = "../known_hosts"
  }
  verify { mode = "tag" }
  forge "gitea" {
    repository         = "no-owner"
    webhook_secret_env = "SLUICE_TEST_KEY"
  }
  stack "s" {}
}
repository "keys-only" {
  url = "https://git.example.com/acme/keys.git"
  permissions {
    approve = ["role:write", "user:ana"]
    suspend = ["team:acme/ml"]
    resum   = ["role:write"]
  }
  stack "s" {}
}
repository "two-tables" {
  url = "https://git.example.com/acme/tables.git"
  permissions { approve = ["user:ana"] }
  forge "github" {
    token_env = "SLUICE_TEST_KEY"
  }
  stack "s" {}
}
