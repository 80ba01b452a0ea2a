# Runs a private Postgres cluster for as long as standard input stays open: when the test process
# ends, however it ends, the pipe closes, the server stops and its directory goes.
# Says "ready" once it is, or else what went wrong.
# Arguments: directory of the binaries, directory to use, port, then server settings.
set -eu
bin=$1 dir=$2 port=$3
shift 3

cd "$dir"
trap 'cd /; rm -rf "$dir"' EXIT
"$bin/initdb" --no-sync --username=postgres --pwfile=secret --auth=scram-sha-256 \
	--encoding=UTF8 --no-locale -D data >log 2>&1 || { tail -n 5 log; exit 1; }
{
	echo "listen_addresses = '127.0.0.1'"
	echo "port = $port"
	echo "unix_socket_directories = '$dir'"
	printf '%s\n' "$@"
} >>data/postgresql.conf
# With --wait a server that can't take its port is an error here.
"$bin/pg_ctl" -D data --wait --silent -l log start >/dev/null 2>&1 || { tail -n 5 log; exit 1; }
# The process may be gone already: then nobody hears this, and the pipe is at its end.
trap '' PIPE
echo ready 2>/dev/null || :
cat >/dev/null || :
"$bin/pg_ctl" -D data --wait --silent --mode=immediate stop >/dev/null 2>&1
