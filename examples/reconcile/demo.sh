#!/usr/bin/env bash
# The reconciler at work: a Git repository and an engine on this machine, a push that
# starts a canary, a gate that parks it, and a person who takes it back. It ends with what
# the traffic saw. It takes a little more than a minute.
#
# Run it with: make demo-reconcile
# Tested by testacc: TestTheReconcilersDemoEndsWell.
set -euo pipefail
cd "$(dirname "$0")/../.."

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
note() { printf '   %s\n' "$*"; }
die() { printf '\ndemo failed: %s\n' "$*" >&2; exit 1; }

for tool in git python3; do command -v "$tool" >/dev/null || die "$tool is not on the PATH: install it first"; done

work=$(mktemp -d)
started=() probe=''
finish() {
  status=$?
  trap - EXIT INT TERM
  [ -z "$probe" ] || kill -INT "$probe" 2>/dev/null || true
  for pid in "${started[@]}"; do kill -TERM "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  if [ "$status" -ne 0 ]; then
    for log in engine reconciler git; do [ ! -s "$work/$log.log" ] || { echo "--- $log said:"; tail -n 20 "$work/$log.log"; } >&2; done
  fi
  rm -rf "$work"
  [ "$status" -ne 0 ] || note "stopped; nothing is left running"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# await SECONDS WHAT COMMAND…: until the command succeeds.
await() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  while ! "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || die "no $what in time"
    sleep 0.2
  done
}
phase() { sluice reconcile status --json | sed -n 's/^ *"phase": "\(.*\)",$/\1/p' | grep -qx "$1"; }
started() { started=("$1" "${started[@]}"); } # what was started last is ended first

mkdir "$work/bin"
cp bin/sluice "$work/bin/sluice"
export PATH="$work/bin:$PATH"

say "1. An engine, and a Git repository over HTTP"
note "The engine's waits are compressed (examples/engine/demo.yaml); its replicas are processes."
sluice serve --data "$work/data" --listen 127.0.0.1:0 --gateway 127.0.0.1:0 --config examples/engine/demo.yaml > "$work/serve.out" 2> "$work/engine.log" &
started $!
git init -q --bare -b main "$work/git/models.git"
python3 examples/reconcile/git-http.py "$work/git" > "$work/git.out" 2> "$work/git.log" &
started $!
await 20 "engine" grep -q '^API key: ' "$work/serve.out"
await 20 "Git server" grep -q '^http' "$work/git.out"
export SLUICE_ENGINE_URL SLUICE_API_KEY SLUICE_RECONCILER_URL SLUICE_RECONCILER_KEY=only-for-the-demo
SLUICE_ENGINE_URL=$(sed -n 's/^API: *//p' "$work/serve.out")
SLUICE_API_KEY=$(cat "$work/data/first-key")
gateway=$(sed -n 's/^Gateway: *//p' "$work/serve.out")
git=$(cat "$work/git.out")
note "engine $SLUICE_ENGINE_URL, repository $git/models.git"

say "2. sluice reconcile: it follows the branch main of that repository"
sed -e "s#http://127.0.0.1:8420#$SLUICE_ENGINE_URL#" -e "s#http://127.0.0.1:8480#$git#" -e 's#127.0.0.1:8090#127.0.0.1:0#' \
  -e 's#window = "5s"#window = "20s"#' examples/reconcile/minimal.hcl > "$work/sluice.hcl"
sluice reconcile --config "$work/sluice.hcl" --check
sluice reconcile --config "$work/sluice.hcl" 2> "$work/reconciler.log" &
started $!
await 20 "reconciler" grep -q '^reconciler: ' "$work/reconciler.log"
SLUICE_RECONCILER_URL=$(sed -n 's/^reconciler: //p' "$work/reconciler.log")
await 20 "first pass" sluice reconcile status
sluice reconcile status

say "3. A push: what serves, and a stopped candidate. Nobody runs terraform"
commit() { git -C "$work/models" add . && git -C "$work/models" -c user.name=Ana -c user.email=ana@example.com commit -q -m "$1" && git -C "$work/models" push -q origin HEAD:main; }
git clone -q "$git/models.git" "$work/models" 2>/dev/null
mkdir "$work/models/prod"
# A candidate that answers more slowly than what it replaces.
sed 's/cr_demo_good/cr_demo_candidate/' examples/reconcile/prod/main.tf > "$work/models/prod/main.tf"
commit "What serves today"
await 30 "state in step" phase "in step"
sluice reconcile status
sluice probe --gateway "$gateway" --model demo/chat --rps 20 --log "$work/probe.jsonl" > "$work/probe.out" 2>&1 &
probe=$!
await 30 "answer" grep -q '"status":200' "$work/probe.jsonl"
note "20 requests a second go through the gateway; every answer is recorded"

say "4. The change, merged: a canary 10 → 50 → 100 with a p95 gate"
cp examples/reconcile/prod/rollout.tf "$work/models/prod/"
commit "Move chat to qwen3.5-9b"
await 30 "rollout" phase "rolling out"
sluice reconcile status
note "It holds nothing while it waits: each pass reads, decides, acts and records."

say "5. The gate finds the candidate slower: the rollout parks at 10 % and waits for a person"
await 90 "park" phase parked
sluice reconcile status
sluice get chat

say "6. The person takes it back: canceled, then gone back step by step"
sluice reconcile reverse models/prod --reason "p95 more than doubled"
await 60 "end of the way back" phase "ahead of Git"
sluice reconcile status
note "Git still asks for the candidate. This very spec is never started again by itself."

say "7. What happened, newest first"
sluice reconcile history --limit 12

say "8. What the traffic saw"
kill -INT "$probe"
wait "$probe" || { cat "$work/probe.out"; die "the probe counted answers that were not 200"; }
probe=''
sed 's/^/   /' "$work/probe.out"
