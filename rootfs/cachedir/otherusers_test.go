package cachedir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
