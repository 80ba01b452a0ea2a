#!/bin/sh
# Entry point of tallystick/postgres: the part of the official image's contract that tests use.
# POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB shape the first start; a first argument of
# postgres, or a flag, starts the server; any other command is run as it is.
set -eu

case "${1:-postgres}" in
-*) set -- postgres "$@" ;;
postgres) ;;
*) exec "$@" ;;
esac

: "${PGDATA:=/var/lib/postgresql/data}"
: "${POSTGRES_USER:=postgres}"
: "${POSTGRES_DB:=$POSTGRES_USER}"

# Postgres refuses to run as root: prepare the directory, then come back as postgres.
if [ "$(id -u)" = 0 ]; then
	mkdir -p "$PGDATA" /var/run/postgresql
	chown -R postgres:postgres "$PGDATA" /var/run/postgresql
	chmod 700 "$PGDATA"
	exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
	if [ -z "${POSTGRES_PASSWORD:-}" ]; then
		echo "POSTGRES_PASSWORD is empty: set it to the superuser's password" >&2
		exit 1
	fi
	secret=$(mktemp)
	printf '%s\n' "$POSTGRES_PASSWORD" >"$secret"
	initdb --no-sync --encoding=UTF8 --locale=C.UTF-8 --username="$POSTGRES_USER" \
		--pwfile="$secret" --auth-local=trust --auth-host=scram-sha-256 "$PGDATA"
	rm -f "$secret"
	echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"

	# The first server is reachable by its socket alone, so nobody mistakes it for the real one.
	pg_ctl -D "$PGDATA" -w -o "-c listen_addresses='' -c fsync=off" start
	if [ "$POSTGRES_DB" != postgres ]; then
		createdb --username="$POSTGRES_USER" --maintenance-db=postgres "$POSTGRES_DB"
	fi
	pg_ctl -D "$PGDATA" -w -m fast stop
fi

shift
exec postgres -c "listen_addresses=*" "$@"
