engine {
  url = "https://engine.example.com
}
