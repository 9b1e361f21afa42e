#!/usr/bin/env bash
# Runs the tests with the race detector and says at the end how many passed.
set -uo pipefail
cd "$(dirname "$0")/.."
# TF_ACC_TERRAFORM_PATH names another terraform, or tofu.
terraform=${TF_ACC_TERRAFORM_PATH:-$(command -v terraform || true)}
if [ ! -x "$terraform" ]; then
  echo "terraform is not on the PATH: install it first (version 1.8 or later)" >&2
  exit 1
fi
# A configuration file of the user's own must not reach the tests' terraform.
unset TF_CLI_CONFIG_FILE
export TF_ACC=1 TF_ACC_TERRAFORM_PATH="$terraform" CHECKPOINT_DISABLE=1
export SLUICE_TEST_BINARY="$PWD/bin/sluice"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
go vet ./... || exit 1
go test -race -timeout 30m -json "$@" > "$out"
status=$?
# The random worlds, and the stories of every call and every fault, are all played only
# without the race detector, which plays a sample.
if [ "$*" = ./... ]; then
  go test -timeout 30m -json -run 'RandomRollouts|WrongEngine|OutwardCall' ./internal/rehearsal >> "$out" || status=1
  go test -timeout 30m -json -run 'EveryCallOfACreate' ./provider -args -faults.all >> "$out" || status=1
  go test -timeout 30m -json -run 'AnyBoundary|AnyCommit|AWeek$|LostAnswersToCreates|WrongReconciler|PlaysTheSameTwice' ./reconciler >> "$out" || status=1
fi
# The table of behaviours is of whole runs; a run of named tests is told by its tests.
page=docs/acceptance.md
case " $* " in *" -run "*) page= ;; esac
go run ./testacc/tally "$out" $page || status=1
exit $status
