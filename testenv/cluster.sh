# Runs a private Postgres cluster for as long as standard input stays open: when the test process
# ends, however it ends, the pipe closes, the server stops and its directory goes.
# Says "ready" once it is, or else what went wrong.
# Arguments: directory of the binaries, directory to use, port, then server settings. Where the
# directory has a file primary, with a connection string, the cluster is a standby of that server;
# where it has a file options, its words are more arguments to initdb. A file prelude holds shell
# commands to run before the server starts, in whose environment it then runs.
set -eu
bin=$1 dir=$2 port=$3
shift 3

cd "$dir"
trap 'cd /; rm -rf "$dir"' EXIT
if [ -f primary ]; then
	"$bin/pg_basebackup" --no-sync --checkpoint=fast --write-recovery-conf --pgdata=data \
		--dbname="$(cat primary)" >log 2>&1 || { tail -n 5 log; exit 1; }
else
	# shellcheck disable=SC2046
	"$bin/initdb" --no-sync --username=postgres --pwfile=secret --auth=scram-sha-256 \
		--encoding=UTF8 --no-locale -D data $(cat options 2>/dev/null) >log 2>&1 ||
		{ tail -n 5 log; exit 1; }
fi
{
	echo "listen_addresses = '127.0.0.1'"
	echo "port = $port"
	echo "unix_socket_directories = '$dir'"
	printf '%s\n' "$@"
} >>data/postgresql.conf
if [ -f prelude ]; then . ./prelude; fi
# With --wait a server that can't take its port is an error here.
"$bin/pg_ctl" -D data --wait --silent -l log start >/dev/null 2>&1 || { tail -n 5 log; exit 1; }
# The process may be gone already: then nobody hears this, and the pipe is at its end.
trap '' PIPE
echo ready 2>/dev/null || :
cat >/dev/null || :
"$bin/pg_ctl" -D data --wait --silent --mode=immediate stop >/dev/null 2>&1
