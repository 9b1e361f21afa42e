engine { url = "https://engine.example.com" }
repository "a" {
  url = "https://git.example.com/acme/a"
  stack "outer" { folder = "prod" }
  stack "inner" { folder = "prod/eu" }
  stack "same" { folder = "./prod/" }
  stack "out" { folder = "../secrets" }
  stack "root" { folder = "/etc" }
  stack "files" {
    folder    = "files"
    var_files = ["../../x.tfvars", "notes.txt"]
  }
  policy {}
  policy {
    path   = "none-here"
    folder = "x"
  }
  policy { repository = "aa" }
}
repository "again" {
  url = "https://GIT.example.com/acme/a.git/"
  stack "p" { folder = "prod" }
}
repository "nothing" {
  url    = "https://git.example.com/acme/nothing"
  branch = "main"
  tag    = "v1"
  include = ["/prod/*.tf", "a[", "ok/**"]
}
repository "short" {
  url    = "https://git.example.com/acme/short"
  commit = "abc123"
  stack "s" {}
}
repository "range" {
  url    = "https://git.example.com/acme/range"
  semver = "newest please"
  stack "s" {}
}
