#!/bin/sh
# Prints the flags of the linker that say which commit a binary is built from; nothing
# where that cannot be known.
commit=$(git describe --always --dirty --exclude '*' 2>/dev/null) || exit 0
echo "-X main.commit=$commit -X main.date=$(git log -1 --date=short --format=%cd)"
