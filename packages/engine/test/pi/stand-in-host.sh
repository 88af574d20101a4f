#!/bin/sh
# As much of satyrn-host as the real-Pi tests need, for a machine on which it is not built yet:
# `implement --leash -- CONTRACT`, an engine that hangs, and the end of stdin as the order to stop.
[ "$1 $2 $3" = "implement --leash --" ] || exit 2
if [ -n "$SATYRN_ENGINE" ]; then
	setsid "$SATYRN_ENGINE" protocol </dev/null >/dev/null 2>&1 &
	# When Pi dies its terminal sends SIGHUP too; the end of stdin comes in any case.
	trap '' TERM HUP
	cat >/dev/null
	kill -9 "-$!"
	echo "satyrn-engine: ENGINE_CANCELLED: the caller closed the leash"
	exit 143
fi
if [ -f "$4" ]; then
	echo "satyrn-engine: OK"
else
	echo "satyrn-engine: CONTRACT_UNREADABLE: cannot read contract $4: No such file or directory"
	exit 3
fi
