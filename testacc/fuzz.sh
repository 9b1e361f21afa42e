#!/usr/bin/env bash
# Fuzzes every fuzz target of the tree for a while each: fuzz.sh TIME
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s}
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r package; do
  for target in $(grep -h -o '^func Fuzz[A-Za-z0-9_]*' "$package"/*_test.go | sed 's/func //'); do
    echo "== $package $target for $time"
    go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 20x
  done
done
