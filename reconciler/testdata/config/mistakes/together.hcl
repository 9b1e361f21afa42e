engine { url = "https://engine.example.com" }
repository "models" {
  url = "https://git.example.com/acme/models"
  stack "pr od" { folder = "../outside" }
}
notify "room" {
  kind    = "teams"
  url_env = "PATH"
}
freeze "nights" {
  cron = "every night"
  for  = "8h"
  zone = "Europe/Berlyn"
}
