#!/bin/sh
# Prints a line for apt's sources of another release of Debian, from where this machine has
# its packages.
#
#   .ci/sources.sh RELEASE
# shellcheck disable=SC2016 # apt's own format language
apt-get indextargets --format '$(REPO_URI)|$(RELEASE)|$(COMPONENT)' 'Identifier: Packages' 'Origin: Debian' |
	awk -F'|' -v release="$1" '$3 == "main" && $2 !~ /-/ { print "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " $1, release, "main"; exit }'
