package container

import (
	"errors"
	"testing"
)

// TestStartErrorIsPlain: libcontainer's account of its steps is in Detail alone.
func TestStartErrorIsPlain(t *testing.T) {
	const nsexec = "starting the sandbox: unable to start container process: can't get final child's PID from pipe: EOF; runc init error(s): "
	for text, want := range map[string]string{
		nsexec + "nsexec-1[12]: failed to unshare user namespace: No space left on device; nsexec-0[11]: failed to sync with stage-1: next state (got 0 of 4 bytes)":       "starting the sandbox: failed to unshare user namespace: No space left on device",
		nsexec + "nsexec-1[13]: failed to sync with parent: read(SYNC_USERMAP_ACK) (got 0 of 4 bytes); nsexec-0[12]: failed to update /proc/13/uid_map: Permission denied": "starting the sandbox: failed to update /proc/13/uid_map: Permission denied",
		nsexec + "nsexec-0[12]: failed to sync with stage-1: next state (got 0 of 4 bytes)":                                                                                "starting the sandbox: can't get final child's PID from pipe: EOF",
		"starting the sandbox: unable to create new parent process: unable to create sync pipe: too many open files":                                                       "starting the sandbox: unable to create sync pipe: too many open files",
		"starting the sandbox: unable to start container process: error during container init: exec: \"/bin/x\": permission denied":                                        "starting the sandbox: exec: \"/bin/x\": permission denied",
		"reading the root directory: open /x: no such file or directory":                                                                                                   "reading the root directory: open /x: no such file or directory",
	} {
		e := &StartError{Err: errors.New(text)}
		if e.Error() != want || e.Detail() != text {
			t.Errorf("%s\nbecame\n%s\nwant\n%s", e.Detail(), e.Error(), want)
		}
	}
}
