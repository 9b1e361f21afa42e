#!/bin/sh
# How traffic is often moved without a rollout: weights and sleeps. The guide "Migrating
# from a script" replaces it line by line.
set -eu
pause="${PAUSE:-600}" # seconds

sluice update qwen35 --min-replicas 1 --max-replicas 1
sleep "$pause" # and hope that it is up

for percent in 10 50 100; do
  sluice update qwen35 --traffic-weight "$percent"
  sluice update qwen25 --traffic-weight "$((100 - percent))"
  sleep "$pause" # and look at a dashboard
done

sluice update qwen25 --min-replicas 0 --max-replicas 0
