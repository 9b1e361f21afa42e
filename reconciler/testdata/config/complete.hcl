# Every block and attribute that there is.

engine {
  url         = "https://engine.example.com"
  project     = "proj_a"
  api_key_env = "SLUICE_TEST_KEY"
}

state {
  postgres_env = "SLUICE_TEST_KEY"
  mirrors      = "mirrors"
  keep         = "720h"
  instance = "models-1"
}

http {
  listen = ":8090"

  key "ana" {
    secret_env = "SLUICE_TEST_KEY"
    role       = "admin"
  }
  key "dashboard" {
    secret_env = "SLUICE_TEST_KEY"
  }
}

repository "models" {
  url       = "git@git.example.com:acme/models.git"
  semver    = ">=1.2.0 <2.0.0"
  include   = ["prod/**/*.tf", "shared/*"]
  exclude   = ["**/*_test.tf"]
  store     = "shallow"
  interval  = "30s"
  deadline  = "5m"
  approval  = "digest"
  supersede = "every"
  drift     = "correct"

  auth {
    ssh_user       = "deploy"
    ssh_key_env    = "SLUICE_TEST_KEY"
    passphrase_env = "SLUICE_TEST_KEY"
    known_hosts    = "known_hosts"
  }

  verify {
    mode            = "tag_and_head"
    openpgp_keys    = "known_hosts"
    allowed_signers = "known_hosts"
  }

  forge "gitlab" {
    url                = "https://git.example.com"
    repository         = "acme/ml/models"
    token_env          = "SLUICE_TEST_KEY"
    webhook_secret_env = "SLUICE_TEST_KEY"
    forks              = "plan"
    interval           = "20s"

    permissions {
      resume   = ["role:write", "team:acme/ml", "user:ana"]
      promote  = []
      cancel   = ["role:triage"]
      reverse  = ["role:maintain"]
      approve  = ["user:ana"]
      override = ["role:admin"]
      retry    = ["role:write"]
      suspend  = ["role:maintain"]
      continue = ["role:maintain"]
      plan     = ["role:read"]
      help     = ["role:read"]
    }
  }

  stack "prod" {
    folder     = "prod"
    var_files  = ["prod.tfvars", "../shared/eu.tfvars"]
    variables  = { region = "eu", replicas = "3" }
    depends_on = ["staging", "platform/base"]
  }
  stack "staging" {
    folder = "prod/staging"
    nested = true
  }

  policy {
    path       = "policies"
    overriders = { "on-call lead" = ["role:admin", "team:acme/sre"] }
  }
  policy {
    repository = "platform"
    folder     = "rules"
  }

  prune {
    most_shrink = 10
  }
}

repository "platform" {
  url    = "https://github.com/acme/platform"
  branch = "main"

  auth {
    github_app {
      id           = 12
      installation = 34
      key_env      = "SLUICE_TEST_KEY"
    }
  }

  forge "github" {
    github_app {
      id           = 12
      installation = 34
      key_env      = "SLUICE_TEST_KEY"
    }
  }

  stack "base" {}
}

repository "by-tag" {
  url = "https://git.example.com/acme/tags.git"
  tag = "stable"
  auth {
    username     = "robot"
    password_env = "SLUICE_TEST_KEY"
  }
  stack "all" {}
}

repository "by-commit" {
  url    = "ssh://git@git.example.com:2222/acme/pinned.git"
  commit = "0123456789abcdef0123456789abcdef01234567"
  auth {
    ssh_agent   = true
    known_hosts = "known_hosts"
  }
  stack "all" {}
}

repository "by-token" {
  url = "https://git.example.com/acme/token.git"
  auth {
    token_env = "SLUICE_TEST_KEY"
  }
  permissions {
    resume   = ["role:write"]
    promote  = []
    cancel   = ["role:triage"]
    reverse  = ["role:maintain"]
    approve  = ["role:write"]
    override = ["role:admin"]
    retry    = ["role:write"]
    suspend  = ["role:write"]
    continue = ["role:write"]
    plan     = ["role:read"]
    help     = ["role:read"]
  }
  stack "all" {}
}

notify "ops" {
  kind     = "webhook"
  url_env  = "SLUICE_TEST_KEY"
  sign_env = "SLUICE_TEST_KEY"
  events   = ["rollout.parked", "source.*"]
  remind   = "1h"
}

notify "log" {
  kind   = "stdout"
  remind = "0s"
}

freeze "holidays" {
  stacks = ["models/prod", "platform"]
  from   = "2126-12-24T00:00:00+01:00"
  until  = "2127-01-02T00:00:00+01:00"
  reason = "nobody is here"
}

freeze "weekends" {
  cron = "0 18 * * 5"
  for  = "62h"
  zone = "Europe/Berlin"
}

limits {
  rollouts   = 3
  fetches    = 2
  per_host   = 0.5
  file_bytes = 65536
  files      = 100
}
