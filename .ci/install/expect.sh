# What the checks here have in common; read by bash.
# shellcheck shell=bash disable=SC2034
failed= # not empty once something was not as expected

fail() {
	echo "FAILED: $*" >&2
	failed=1
}

# expect compares what a command prints with a pattern of bash.
expect() { # PATTERN COMMAND…
	local pattern=$1 got errors
	shift
	errors=$(mktemp)
	got=$("$@" 2>"$errors") || fail "$*: exit code $?: $(cat "$errors")"
	# shellcheck disable=SC2053 # a pattern
	[[ $got == $pattern ]] || fail "$* prints: $got; want: $pattern"
	rm -f "$errors"
}

# typed returns what `toolcell upgrade` says is to be typed, below the line on what there is.
typed() {
	local text
	text=$(toolcell upgrade | tail -n +2)
	[ -n "$text" ] || fail "toolcell upgrade says nothing"
	echo "$text"
}
