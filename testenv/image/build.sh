#!/bin/bash
# Builds the Docker image tallystick/postgres:15 from Debian's own packages, for networks where
# no container registry can be reached. Needs root, Docker and debootstrap; asks the Debian mirror
# that this machine's apt uses, or the one in TALLY_IMAGE_MIRROR. Does nothing where the image is
# there already; --force builds it anew.
set -euo pipefail

image=tallystick/postgres:15
suite=bookworm
here=$(cd "$(dirname "$0")" && pwd)

die() {
	echo "build $image: $*" >&2
	exit 1
}

# configured_mirror prints the first archive of Debian in apt's configuration, in either of apt's
# two formats, preferring one that names the suite.
configured_mirror() {
	local sources found
	shopt -s nullglob
	sources=$(sed -En 's/^deb +(\[[^]]*\] +)?([^ ]+) +([^ ]+) .*/\2 \3/p' \
		/dev/null /etc/apt/sources.lis[t] /etc/apt/sources.list.d/*.list
	awk '/^URIs:/ {uri = $2} /^Suites:/ {for (i = 2; i <= NF; i++) print uri, $i}' \
		/dev/null /etc/apt/sources.list.d/*.sources)
	found=$(awk -v suite="$suite" '$1 ~ /^https?:/ && $2 == suite {print $1}' <<<"$sources"
	awk '$1 ~ /^https?:.*\/debian\/?$/ {print $1}' <<<"$sources")
	echo "${found%%$'\n'*}"
}

install_postgres() {
	local root=$1
	# No service starts while packages are unpacked, and the image's entry point makes the cluster.
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod +x "$root/usr/sbin/policy-rc.d"
	mkdir -p "$root/etc/postgresql-common"
	echo 'create_main_cluster = false' >"$root/etc/postgresql-common/createcluster.conf"
	DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$root" \
		apt-get install -y -q --no-install-recommends postgresql-15
	chroot "$root" apt-get clean
	rm -rf "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/* \
		"$root/usr/sbin/policy-rc.d" "$root/etc/resolv.conf"
	install -m 755 "$here/entrypoint.sh" "$root/usr/local/bin/docker-entrypoint.sh"
}

if [ "${1:-}" != --force ] && docker image inspect "$image" >/dev/null 2>&1; then
	echo "$image is there already"
	exit 0
fi
[ "$(id -u)" = 0 ] || die "run it as root: debootstrap needs chroot"
docker info >/dev/null 2>&1 || die "no Docker engine answers: start one (dockerd) first"
command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"
mirror=${TALLY_IMAGE_MIRROR:-$(configured_mirror)}
[ -n "$mirror" ] || die "no Debian mirror in apt's configuration: set TALLY_IMAGE_MIRROR to one"

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
debootstrap --variant=minbase "$suite" "$work/root" "$mirror" >"$work/log" ||
	{ tail -20 "$work/log" >&2; die "debootstrap from $mirror failed"; }
install_postgres "$work/root" >"$work/log" 2>&1 ||
	{ tail -20 "$work/log" >&2; die "installing postgresql-15 failed"; }
tar -C "$work/root" --one-file-system -c . | docker import \
	--change 'ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin' \
	--change 'ENV PGDATA=/var/lib/postgresql/data' \
	--change 'ENV LANG=C.UTF-8' \
	--change 'EXPOSE 5432' \
	--change 'ENTRYPOINT ["docker-entrypoint.sh"]' \
	--change 'CMD ["postgres"]' \
	- "$image" >/dev/null
echo "built $image from $mirror"
