#!/bin/bash
# Makes sure of what the tests of faults need beside a Postgres: the server's binaries, to stop and
# kill servers of their own whatever the other tests run on; PgBouncer; and libfaketime, which gives
# a server a wrong clock. Installs Debian's packages where they are missing.
set -euo pipefail

packages=()
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null ||
	packages+=(postgresql)
[ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null || packages+=(pgbouncer)
compgen -G '/usr/lib/*/faketime/libfaketime.so.1' >/dev/null || packages+=(libfaketime)
[ ${#packages[@]} -gt 0 ] || exit 0
if ! command -v apt-get >/dev/null; then
	echo "tests of faults will fail without: ${packages[*]}" >&2
	exit 0
fi
echo "for tests of faults: installing Debian's ${packages[*]}" >&2
sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)
{
	"${sudo[@]}" apt-get update -q
	# RUNLEVEL=1 keeps the packages' services down: the tests start their own.
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get install -y -q --no-install-recommends "${packages[@]}"
} >&2
