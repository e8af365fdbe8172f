package cachedir

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/toolcell/toolcell/internal/state"
)

func TestFoldersThatOthersCanChangeAreNotUsed(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "wheels")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, inner} {
		for mode, foreign := range map[os.FileMode]bool{0o700: false, 0o755: false, 0o777: true, 0o757: true, 0o1777 | os.ModeSticky: true} {
			if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(inner, 0o755), os.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
			err := CheckOwn(dir, "wheels", "not there")
			found, ok := errors.AsType[*UntrustedError](err)
			if (err != nil) != foreign || ok != foreign || foreign && !strings.Contains(found.Cure, "chmod go-w "+path) {
				t.Errorf("%s, %v: got %v", path, mode, err)
			}
		}
	}
}

func TestFoldersOfAnotherUserAreNotUsed(t *testing.T) {
	dir := t.TempDir()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkOwn(dir, info, os.Geteuid()); err != nil {
		t.Errorf("one's own: %v", err)
	}
	err = checkOwn(dir, info, os.Geteuid()+1)
	if os.Geteuid() == 0 {
		if err != nil {
			t.Errorf("root's: %v", err)
		}
		if err := os.Chown(dir, 4321, 4321); err != nil {
			t.Fatal(err)
		}
		if info, err = os.Stat(dir); err != nil {
			t.Fatal(err)
		}
		err = checkOwn(dir, info, 0)
	}
	var foreign *UntrustedError
	if !errors.As(err, &foreign) || foreign.Why != "belongs to another user" {
		t.Errorf("another's: %v", err)
	}
}

// TestOwnersUnknownInOurNamespaceAreTrusted: the host's root is one, and cannot be told from others.
func TestOwnersUnknownInOurNamespaceAreTrusted(t *testing.T) {
	const inner = "CACHEDIR_TEST_OWNED"
	if dir := os.Getenv(inner); dir != "" {
		if err := CheckOwn(dir); err != nil {
			t.Error(err)
		}
		return
	}
	dir := "/" // the root's
	if os.Geteuid() == 0 {
		dir = t.TempDir()
		if err := os.Chown(dir, state.UnmappedID, state.UnmappedID); err != nil {
			t.Skip(err)
		}
		if err := CheckOwn(dir); err == nil && !inUserNamespace() {
			t.Error("a user that is known is trusted")
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inner+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Skip("needs a user namespace: ", err)
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestFoldersWithoutAKnownOwnerAreNotUsed(t *testing.T) {
	info, err := fs.Stat(fstest.MapFS{"d/f": {}}, "d")
	if err != nil {
		t.Fatal(err)
	}
	err = checkOwn("d", info, os.Geteuid())
	if _, ok := errors.AsType[*UntrustedError](err); !ok {
		t.Errorf("got %v", err)
	}
}
