# M5: a → b → a over two repositories, a dependency on nothing, and one on itself.
engine {
  url         = "https://engine.example.com"
  api_key_env = "SLUICE_TEST_KEY"
}
repository "a" {
  url = "https://git.example.com/acme/a"
  stack "one" {
    depends_on = ["b/two"]
  }
  stack "lost" {
    folder     = "lost"
    nested     = true
    depends_on = ["on", "b/tow", "c/x"]
  }
}
repository "b" {
  url = "https://git.example.com/acme/b"
  stack "two" {
    depends_on = ["three"]
  }
  stack "three" {
    folder     = "three"
    nested     = true
    depends_on = ["a/one"]
  }
  stack "self" {
    folder     = "self"
    nested     = true
    depends_on = ["self"]
  }
}
