# Runs PgBouncer for as long as standard input stays open: when the test process ends, however it
# ends, the pipe closes, the pooler stops and its directory goes. Says "ready" once it is started.
# Arguments: the program, and the directory with its pooler.ini.
set -eu
program=$1 dir=$2

cd "$dir"
"$program" -q pooler.ini </dev/null >log 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null || :; cd /; rm -rf "$dir"' EXIT
trap '' PIPE
echo ready 2>/dev/null || :
cat >/dev/null || :
