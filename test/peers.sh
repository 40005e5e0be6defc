#!/bin/sh
# Installs the real programs that the tests talk to. Debian and root; elsewhere it
# names what is missing. In CI a missing peer is a failure, not a skip.
set -eu
need=""
have() { command -v "$1" >/dev/null 2>&1; }
have iperf3 || need="$need iperf3"
have iperf || need="$need iperf"
have nuttcp || need="$need nuttcp"
have nft || need="$need nftables"
have ip || need="$need iproute2"
have ethtool || need="$need ethtool"
have jq || need="$need jq"
have openssl || need="$need openssl"
have ncat || need="$need ncat"
have dumpcap || need="$need wireshark-common"
have xmllint || need="$need libxml2-utils"
have chromium || have chromium-browser || have google-chrome || need="$need chromium fonts-liberation"
have npm || need="$need npm"
if [ -n "${CI:-}" ] || [ -n "${FULLBORE_WINE:-}" ]; then
	have wine64 || [ -x /usr/lib/wine/wine64 ] || need="$need wine64"
	have x86_64-w64-mingw32-gcc || need="$need gcc-mingw-w64-x86-64"
fi
[ -z "$need" ] && exit 0
if have apt-get && [ "$(id -u)" = 0 ]; then
	echo "installing:$need"
	apt-get update -qq
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $need >/dev/null
	exit 0
fi
if [ -n "${CI:-}" ]; then
	echo "missing peers:$need (CI needs them)" >&2
	exit 1
fi
echo "note: tests that talk to these programs will be skipped:$need" >&2
