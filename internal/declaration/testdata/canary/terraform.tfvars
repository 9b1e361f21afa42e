p95_budget = 25
