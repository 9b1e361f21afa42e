#!/usr/bin/env bash
# The demo: a real engine with model servers as processes, steady traffic, and a real
# "terraform apply" that parks at 10 % on a latency regression, is canceled with the
# split frozen, and goes back by a reverse rollout. It ends with what the traffic saw.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
note() { printf '   %s\n' "$*"; }
die() { printf '\ndemo failed: %s\n' "$*" >&2; exit 1; }

command -v terraform >/dev/null || die "terraform is not on the PATH: install it first (version 1.8 or later)"

work=$(mktemp -d)
server='' probe=''
finish() {
  status=$?
  trap - EXIT INT TERM
  [ -z "$probe" ] || kill -INT "$probe" 2>/dev/null || true
  if [ -n "$server" ]; then kill -INT "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi
  if [ "$status" -ne 0 ] && [ -f "$work/engine.log" ]; then echo '--- the engine said:' >&2; tail -n 20 "$work/engine.log" >&2; fi
  left=$(pgrep -f "$work" || true)
  if [ -n "$left" ]; then echo "processes left behind: $left" >&2; status=1; fi
  rm -rf "$work"
  [ "$status" -ne 0 ] || note "stopped; nothing is left running"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Terraform finds the provider in a folder, as it would in a company's mirror.
install_provider() {
  local to="$work/mirror/registry.terraform.io/sluice-dev/sluice/0.1.0/$(go env GOOS)_$(go env GOARCH)"
  mkdir -p "$to" "$work/bin"
  cp bin/sluice "$to/terraform-provider-sluice_v0.1.0"
  cp bin/sluice "$work/bin/sluice"
  cat > "$work/terraformrc" <<EOF
provider_installation {
  filesystem_mirror {
    path = "$work/mirror"
  }
}
EOF
  export TF_CLI_CONFIG_FILE="$work/terraformrc" CHECKPOINT_DISABLE=1 TF_IN_AUTOMATION=1 PATH="$work/bin:$PATH"
}

# await_line FILE TEXT: until a line with the text stands in the file, 20 s at most.
await_line() {
  for _ in $(seq 200); do
    grep -q "$2" "$1" 2>/dev/null && return
    kill -0 "$server" 2>/dev/null || die "the engine ended by itself"
    sleep 0.1
  done
  die "no \"$2\" in $1"
}

# await_lines FILE COUNT: until the file has so many lines, 30 s at most.
await_lines() {
  for _ in $(seq 300); do
    [ "$(wc -l < "$1")" -ge "$2" ] && return
    sleep 0.1
  done
  die "fewer than $2 lines in $1"
}

state() { sluice get "$1" --json | sed -n 's/^  "state": "ROLLOUT_STATE_\(.*\)",$/\1/p'; }
expect() { local got; got=$(state "$1"); [ "$got" = "$2" ] || die "rollout $1 is $got, not $2"; }

# await_state ROLLOUT STATE: 20 s at most.
await_state() {
  for _ in $(seq 100); do [ "$(state "$1")" = "$2" ] && return; sleep 0.2; done
  expect "$1" "$2"
}

install_provider

say "1. An engine with an empty data folder"
note "Its waits are compressed so that this takes two minutes and not twenty:"
note "30 s of propagation are 2 s, 90 s of ingestion lag are 2 s, a gate's window is 75 s (examples/engine/demo.yaml)."
sluice serve --data "$work/data" --listen 127.0.0.1:0 --gateway 127.0.0.1:0 --config examples/engine/demo.yaml > "$work/serve.out" 2> "$work/engine.log" &
server=$!
await_line "$work/serve.out" '^API key: '
sed 's/^API key: .*/API key: (kept in data\/first-key, mode 0600)/; s/^/   /' "$work/serve.out"
export SLUICE_ENGINE_URL SLUICE_API_KEY
SLUICE_ENGINE_URL=$(sed -n 's/^API: *//p' "$work/serve.out")
SLUICE_API_KEY=$(cat "$work/data/first-key")
gateway=$(sed -n 's/^Gateway: *//p' "$work/serve.out")

say "2. terraform apply: an endpoint, what serves today, and a stopped candidate"
mkdir "$work/canary"
cp examples/canary-regression/main.tf "$work/canary/"
cd "$work/canary"
terraform init -no-color > "$work/init.log" || { cat "$work/init.log"; die "terraform init"; }
terraform apply -auto-approve -no-color -compact-warnings
endpoint=$(terraform output -raw endpoint_id)

say "3. Steady traffic: 5 requests a second through the gateway, every answer recorded"
sluice probe --gateway "$gateway" --model demo/chat --rps 5 --log "$work/probe.jsonl" > "$work/probe.out" 2>&1 &
probe=$!
await_line "$work/probe.jsonl" '"status":200'
note "first answer: $(head -n 1 "$work/probe.jsonl")"
await_lines "$work/probe.jsonl" 40 # so that the plan below knows the rate

say "4. The change under review: a canary 10 → 50 → 100 with a p95 gate. terraform plan:"
cp "$root/examples/canary-regression/rollout.tf" .
terraform plan -no-color -var window=75s -out=plan

say "5. terraform apply: moves 10 %, soaks, judges (about 90 s)"
began=$SECONDS
terraform apply -no-color plan
note "apply returned after $((SECONDS - began)) s"
rollout=$(terraform output -raw rollout_id)
expect "$rollout" SYSTEM_PAUSED
terraform plan -no-color -var window=75s -detailed-exitcode > "$work/again.log" && die "a parked rollout plans nothing" || [ $? -eq 2 ] || { cat "$work/again.log"; die "plan after the park"; }
note "the next plan offers to go on waiting: $(grep -m 1 '^Plan:' "$work/again.log")"

say "6. What a person who is paged sees"
sluice get "$rollout"

say "7. The regression is real: cancel. The split is frozen as it is served"
sluice rollout "$endpoint" --cancel --reason "p95 latency regression on the candidate"
await_state "$rollout" CANCELED
sluice get "$endpoint"

say "8. The way back is an ordinary rollout with the sides swapped, from HCL"
mkdir "$work/back"
cp "$root/examples/canary-regression/reverse/main.tf" "$work/back/"
cd "$work/back"
terraform init -no-color > "$work/init.log" || { cat "$work/init.log"; die "terraform init"; }
TF_VAR_endpoint_id=$endpoint TF_VAR_qwen25_id=$(terraform -chdir="$work/canary" output -raw qwen25_id) TF_VAR_qwen35_id=$(terraform -chdir="$work/canary" output -raw qwen35_id) \
  terraform apply -auto-approve -no-color -compact-warnings
back=$(terraform output -raw rollout_id)
expect "$back" COMPLETED

say "9. The event feed"
sluice events "$endpoint" --limit 100

say "10. What the traffic saw, through the shift, the park, the cancel and the way back"
note "rollout $rollout: $(state "$rollout") (it was SYSTEM_PAUSED at 10 %)"
note "rollout $back: $(state "$back")"
kill -INT "$probe"
wait "$probe" || { cat "$work/probe.out"; die "the probe counted answers that were not 200"; }
probe=''
sed 's/^/   /' "$work/probe.out"
