package oci

import (
	"strings"
	"testing"
)

// TestCodeHasNoKeys: a sandbox whose user ID has too many keys keeps the session
// keyring of the user who runs toolcell, which must be out of its reach: none of the
// calls for keys gets to the kernel.
func TestCodeHasNoKeys(t *testing.T) {
	const calls = `
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": (250, 248, 249), "aarch64": (219, 217, 218)}[os.uname().machine]
for call, arguments in zip(numbers, ((0, -3, 1, 0, 0), (b"user", b"x", b"y", 1, -3), (b"user", b"x", None, 0, 0))):
    ctypes.set_errno(0)
    result = libc.syscall(call, *arguments)
    print(result, errno.errorcode[ctypes.get_errno()])
print(open("/proc/keys").read())
`
	eachKind(t, func(t *testing.T, l *lab) {
		if got, _ := l.run(t, calls); strings.TrimSpace(got) != "-1 EPERM\n-1 EPERM\n-1 EPERM" {
			t.Errorf("got %q", got)
		}
	})
}
