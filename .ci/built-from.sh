#!/bin/sh
# Prints the flags of the linker that say which commit a binary is built from; nothing
# where that cannot be known.
git log -1 --date=short --format='-X main.commit=%h -X main.date=%cd' 2>/dev/null || true
