#!/usr/bin/env bash
# Installs what the benchmarks compare with, builds their parts, and runs them.
# BENCH_SHORT=1 takes about a minute and is for trying the benchmarks out.
set -euo pipefail
cd "$(dirname "$0")/../.."

say() { printf '%s\n' "$*"; }

# install PACKAGE COMMAND WHY: as root with apt-get when it is absent. Without it the
# benchmarks go on and say what is missing.
install() {
  command -v "$2" >/dev/null && return
  PATH=$PATH:/usr/sbin command -v "$2" >/dev/null && return
  if ! command -v apt-get >/dev/null; then
    say "$2 is not installed and this system has no apt-get: $3 is left out"
    return
  fi
  local as=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      say "$2 is not installed and installing $1 needs root: $3 is left out"
      return
    fi
    as=(sudo -n)
  fi
  say "installing $1 with apt-get ($3)"
  # Nothing may be started by the installation: the benchmarks run their own.
  local policy=/usr/sbin/policy-rc.d made=''
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as[@]}" tee "$policy" >/dev/null && "${as[@]}" chmod 755 "$policy" && made=1
  fi
  local log
  log=$(mktemp)
  if ! { "${as[@]}" apt-get update -qq && DEBIAN_FRONTEND=noninteractive "${as[@]}" apt-get install -y -qq --no-install-recommends "$1"; } >"$log" 2>&1; then
    say "$1 could not be installed: $3 is left out"
    tail -n 3 "$log"
  fi
  rm -f "$log"
  [ -z "$made" ] || "${as[@]}" rm -f "$policy"
}

install wrk wrk "wrk as the load generator; without it one written in Go is used"
install nginx-light nginx "the row of nginx split_clients"
export PATH=$PATH:/usr/sbin

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
say "building the mock upstream, the provider that does nothing, and the benchmarks"
go build -trimpath -ldflags '-s -w' -o "$work/bin/" ./testacc/bench/mock ./testacc/bench/emptyprovider ./testacc/bench

# A configuration file of the user's own must not reach the terraform that is timed.
unset TF_CLI_CONFIG_FILE
export CHECKPOINT_DISABLE=1
"$work/bin/bench" --dir "$work" --sluice "$PWD/bin/sluice" ${BENCH_SHORT:+--short} ${BENCH_ONLY:+--only "$BENCH_ONLY"}
