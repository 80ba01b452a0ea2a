#!/bin/bash
# Runs go test with the arguments given, after making sure of a Postgres, and then tells which
# servers the tests ran on: go test hides what packages that pass print.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

testenv/scripts/ensure-postgres.sh && testenv/scripts/ensure-faults.sh || exit 1
TALLY_TEST_REPORT=$(mktemp)
export TALLY_TEST_REPORT
trap 'rm -f "$TALLY_TEST_REPORT"' EXIT
go test -count=1 "$@"
code=$?
sort "$TALLY_TEST_REPORT" | uniq -c
exit $code
