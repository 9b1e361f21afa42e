# The least that a reconciler needs, on one machine. The quick start of docs/reconcile.md
# runs it, and so does make demo-reconcile.
#
# Tested by internal/cli: TestTheReconcilersExamplesAreTaken.

engine {
  url         = "http://127.0.0.1:8420"
  api_key_env = "SLUICE_API_KEY"
}

http {
  listen = "127.0.0.1:8090"
  key "me" {
    secret_env = "SLUICE_RECONCILER_KEY"
    role       = "admin"
  }
}

repository "models" {
  url      = "http://127.0.0.1:8480/models.git"
  branch   = "main"
  interval = "5s"

  stack "prod" {
    folder    = "prod"
    variables = { window = "5s" } # the gate's; an engine in production looks back for minutes
  }
}
