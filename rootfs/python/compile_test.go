package python

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

type entry = unpacktest.Entry

var (
	file, program, dir = unpacktest.File, unpacktest.Program, unpacktest.Dir
	symlink            = unpacktest.Symlink
)

const bytecode = "0123456789abcdef code" // with something like a header

// frame is one file as the scripts write it.
func frame(name, content string) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(name)))
	return string(binary.BigEndian.AppendUint32(head, uint32(len(content)))) + name + content
}

// writes is a sandbox that writes a text.
func writes(text string) Run {
	return func(_ context.Context, _ []string, out *os.File) error {
		_, err := out.WriteString(text)
		return err
	}
}

// TestBytecodeStaysInItsPlace: the names come from a sandbox, where a hostile
// image can write what it likes.
func TestBytecodeStaysInItsPlace(t *testing.T) {
	for name, want := range map[string]string{
		"/lib/__pycache__/m.pyc":                        "",
		"lib/__pycache__/m.pyc":                         "",
		"/lib2/__pycache__/m.pyc":                       "",
		"/../../lib/__pycache__/m.pyc":                  "",
		"/lib/m.py":                                     "no place",
		"/lib/m.pyc":                                    "no place",
		"/lib/__pycache__/m.py":                         "no place",
		"/lib/__pycache__/../m.pyc":                     "no place",
		"/none/__pycache__/m.pyc":                       "not exist",
		"/up/__pycache__/m.pyc":                         "", // the root's own "/"
		"/abs/__pycache__/m.pyc":                        "",
		"/l/__pycache__/m.pyc":                          "is a file",
		"/f/__pycache__/m.pyc":                          "is a file",
		"/lib/__pycache__/" + strings.Repeat("x", 5000): "limits",
		"":                           "empty",
		"/lib/__pycache__/a\x00.pyc": "NUL",
	} {
		root := unpacktest.Root(t,
			file("lib/m.py", ""), symlink("up", "../../.."), symlink("abs", "/"), symlink("lib2", "lib"),
			dir("l"), symlink("l/__pycache__", "/lib"), file("f/__pycache__", "a file"),
		)
		_, err := CompileModules(t.Context(), "/usr/bin/python3", root, 100, writes(frame(name, bytecode)))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", name, err, want)
		}
		above := filepath.Dir(root.Name())
		for _, outside := range []string{above, filepath.Dir(above)} {
			if _, err := os.Lstat(filepath.Join(outside, "__pycache__")); err == nil {
				t.Errorf("%q made %s/__pycache__", name, outside)
			}
		}
	}
}

// TestProgramStaysInItsFolder has a sandbox that names files elsewhere.
func TestProgramStaysInItsFolder(t *testing.T) {
	for _, name := range []string{"../x.pyc", "x.pyc", "__pycache__/../../x.pyc", "../__pycache__/../__pycache__/x.py"} {
		root := unpacktest.Root(t)
		b, err := CompileProgram(t.Context(), "/usr/bin/python3", "/runner", root, writes(frame(name, bytecode)))
		if err == nil || len(b.Files) != 0 || unpacktest.List(t, root.Name()) != "" {
			t.Errorf("%s: got %v, %v", name, b, err)
		}
	}
}

func TestBytecodeCutShortIsAnError(t *testing.T) {
	_, err := CompileModules(t.Context(), "/usr/bin/python3", unpacktest.Root(t), 100, writes("\x00\x00\x00\x05\x00\x00\x00\x20abc"))
	if err == nil || !strings.Contains(err.Error(), "reading bytecode") {
		t.Errorf("got %v", err)
	}
}

func TestNoBytecodeIsAnErrorOfAProgram(t *testing.T) {
	_, err := CompileProgram(t.Context(), "/usr/bin/python3", "/runner", unpacktest.Root(t), writes(""))
	if err == nil || !strings.Contains(err.Error(), "no bytecode") {
		t.Errorf("got %v", err)
	}
}

func TestEndlessProgramIsCut(t *testing.T) {
	_, err := CompileProgram(t.Context(), "/usr/bin/python3", "/runner", unpacktest.Root(t), func(ctx context.Context, _ []string, out *os.File) error {
		for ctx.Err() == nil {
			if _, err := out.WriteString(frame("__pycache__/m.pyc", strings.Repeat("x", 1<<20))); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "more bytecode than the limits allow") {
		t.Errorf("got %v", err)
	}
}

// TestBytecodeHasAQuotaOfFiles: files without a content would cost no bytes.
func TestBytecodeHasAQuotaOfFiles(t *testing.T) {
	root := unpacktest.Root(t, file("lib/m.py", ""))
	b, err := CompileModules(t.Context(), "/usr/bin/python3", root, 100, func(ctx context.Context, _ []string, out *os.File) error {
		for n := 0; ctx.Err() == nil; n++ {
			if _, err := out.WriteString(frame(fmt.Sprintf("/lib/__pycache__/m.%d.pyc", n), bytecode)); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "TOOLCELL_IMAGE_MAX_FILES") || len(b.Files) != 100 {
		t.Errorf("%d files, %v", len(b.Files), err)
	}
	b, err = CompileModules(t.Context(), "/usr/bin/python3", root, 100, writes(frame("/lib/__pycache__/empty.pyc", "")))
	if err == nil || !strings.Contains(err.Error(), "too few") || len(b.Files) != 0 {
		t.Errorf("an empty file: %v, %v", b, err)
	}
}
