#!/bin/sh
# Says what comes after `make install`.
#
#   .ci/installed.sh DIR    # where the program is now
case :$PATH: in
*:"$1":* | *:"$1"/:*) echo "installed $1/toolcell; try: toolcell doctor" ;;
*) echo "installed $1/toolcell. $1 is not in your PATH yet; type: export PATH=\"$1:\$PATH\"" ;;
esac
