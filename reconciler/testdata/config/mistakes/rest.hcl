engine { url = "https://engine.example.com" }
engine { url = "https://other.example.com" }
state {
  path         = "a.db"
  postgres_env = "SLUICE_TEST_KEY"
  keep         = "90d"
}
http {
  key "ana" { role = "root" }
}
repository "r" {
  url = "https://git.example.com/acme/r"
  stack "s" {}
  stack "s" { folder = "t" }
  stack "no/slash" {}
  prune { most_shrink = 0 }
}
notify "a" {}
notify "b" { kind = "webhook" }
notify "c" {
  kind     = "stdout"
  url_env  = "SLUICE_TEST_KEY"
  sign_env = "SLUICE_TEST_KEY"
  remind   = "1s"
  events   = ["parked", "rollouts.*", "stack.paused", "rollout.prked", "asked.something", "nothing.*", "rollout.*", "run.finished"]
}
freeze "none" {}
freeze "both" {
  from = "2026-01-01T00:00:00Z"
  cron = "0 0 * * *"
}
freeze "backwards" {
  from  = "2026-01-02T00:00:00Z"
  until = "2026-01-01T00:00:00Z"
}
freeze "over" {
  from  = "2025-12-24T00:00:00Z"
  until = "2026-01-02T00:00:00Z"
}
freeze "no-offset" {
  from  = "2026-01-02 00:00"
  until = "2026-01-03T00:00:00Z"
}
freeze "never" {
  cron = "0 0 31 2 *"
  for  = "1h"
}
freeze "six" {
  cron = "0 0 0 * * *"
  for  = "1h"
}
freeze "nowhere" {
  cron   = "0 0 * * *"
  for    = "1h"
  zone   = "Europe/Berlinn"
  stacks = ["rr", "r/x"]
}
freeze "long" {
  cron = "0 0 * * *"
  for  = "1000h"
}
