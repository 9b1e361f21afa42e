name = "overridden"

sides = {
  old = { model = "demo/qwen2.5-7b", low = 2 }
  new = { model = "demo/qwen3.5-9b", config = "cr_demo_good" }
}
