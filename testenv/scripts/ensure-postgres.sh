#!/bin/bash
# Makes sure that tests and the demo find a Postgres: a server named in the environment, a Docker
# engine, or the binaries; where there is none of these, installs Debian's postgresql package.
set -euo pipefail

# The package's own cluster is not wanted: tests and the demo make private ones.
install_postgres() {
	local sudo=()
	[ "$(id -u)" = 0 ] || sudo=(sudo)
	"${sudo[@]}" apt-get update -q
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -q --no-install-recommends postgresql
	"${sudo[@]}" service postgresql stop || :
}

has_binaries() {
	command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
		compgen -G '/usr/pgsql-*/bin/initdb' >/dev/null ||
		compgen -G '/opt/homebrew/opt/postgresql@*/bin/initdb' >/dev/null ||
		compgen -G '/usr/local/opt/postgresql@*/bin/initdb' >/dev/null
}

# An engine counts only with an image that it holds, or that it can pull.
has_engine() {
	local image
	docker info >/dev/null 2>&1 || return 1
	for image in ${TALLY_TEST_IMAGE:-tallystick/postgres:15 postgres:15-alpine}; do
		docker image inspect "$image" >/dev/null 2>&1 && return 0
	done
	docker pull -q "$image" >/dev/null 2>&1
}

if [ -n "${TALLY_TEST_DATABASE_URL:-}" ] || has_binaries || has_engine; then
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "no Postgres found: install it, start Docker, or set TALLY_TEST_DATABASE_URL" >&2
	exit 1
fi
echo "no Postgres found: installing Debian's package postgresql" >&2
install_postgres >&2
