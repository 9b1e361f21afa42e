# A reconciler as a team runs it: two stacks of one repository on GitHub, a policy, people
# with different rights, notifications and a freeze. Every setting there is stands in
# docs/reconcile.md. No secret is in this file: each is a path or a variable's name.
#
#   sluice reconcile --config sluice.hcl --check     says what is wrong with it
#   sluice reconcile --config sluice.hcl             runs until it is told to stop
#
# Tested by internal/cli: TestTheReconcilersExamplesAreTaken.

engine {
  url          = "https://engine.example.com"
  api_key_file = "/run/secrets/sluice-engine-key"
}

# Intents, decisions and history. Keep it: a reconciler without its journal is another
# one, to which the endpoints do not belong. PostgreSQL lets a second process stand by on
# another machine; without the block it is the file sluice-reconciler.db.
state {
  postgres_file = "/run/secrets/sluice-journal"
  mirrors       = "/var/lib/sluice-reconcile/mirrors"
}

# Status, metrics, webhooks and commands. Put TLS in front of it.
http {
  listen = "127.0.0.1:8090"

  key "dashboard" { # reads
    secret_file = "/run/secrets/dashboard-key"
  }
  key "on-call" { # also suspends, approves, takes back
    secret_file = "/run/secrets/on-call-key"
    role        = "admin"
  }
}

repository "models" {
  url    = "https://github.com/acme/models.git"
  branch = "main"

  # merge: what is merged is applied. digest: somebody approves the plan as well.
  approval = "digest"
  # Of the commits that come while an endpoint is busy only the newest is applied; the
  # others are listed as skipped.
  supersede = "latest"
  # What somebody changed at the engine is told. correct would put it right too.
  drift = "report"

  auth {
    token_file = "/run/secrets/github-token"
  }

  forge "github" {
    token_file          = "/run/secrets/github-token"
    webhook_secret_file = "/run/secrets/github-webhook"
    interval            = "20s"

    permissions {
      cancel  = ["role:triage"] # in doubt anybody may stop it
      approve = ["team:acme/ml-leads"]
      promote = ["user:ana"]
    }
  }

  stack "staging" {
    folder = "staging"
  }

  stack "prod" {
    folder     = "prod"
    variables  = { window = "300s" }
    depends_on = ["staging"] # starts nothing until staging is at rest and in step
  }

  # Rules that judge every plan (examples/policy/rego). A denial names who may lift it;
  # who that is stands here.
  policy {
    path = "../policy/rego"
    overriders = {
      "platform-leads" = ["team:acme/platform-leads"]
      "on-call"        = ["team:acme/on-call", "user:ana"]
    }
  }

  # Without this block nothing is ever deleted.
  prune {
    most_shrink = 30 # percent of a stack's things that one commit may take away
  }
}

notify "on-call" {
  kind     = "slack"
  url_file = "/run/secrets/slack-url"
  events   = ["rollout.*", "stack.*", "drift.*"]
  remind   = "1h" # while something is parked
}

notify "audit" {
  kind      = "webhook"
  url_file  = "/run/secrets/audit-url"
  sign_file = "/run/secrets/audit-sign"
}

# Nothing is started from Friday evening until Monday morning; what runs goes on.
freeze "weekends" {
  stacks = ["models/prod"]
  cron   = "0 18 * * 5"
  for    = "62h"
  zone   = "Europe/Berlin"
  reason = "nobody is there"
}

limits {
  rollouts = 3 # under way at once, over all stacks
}
