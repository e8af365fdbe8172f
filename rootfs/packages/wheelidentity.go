package packages

import (
	"archive/zip"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// The policy decides by the name and version in the lock. A wheel itself states them three
// times: in its file name, in the name of its .dist-info, by which Python's tools find it,
// and in METADATA. All must agree, or a denied version could pass under another number.

const distInfoSuffix = ".dist-info"

// distInfo returns the name of the wheel's only .dist-info folder, which must be the
// package's.
func distInfo(ctx context.Context, files []*zip.File, p lockedPackage) (string, error) {
	found := map[string]bool{}
	for _, e := range files {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if top, _, ok := strings.Cut(e.Name, "/"); ok && strings.HasSuffix(top, distInfoSuffix) {
			found[top] = true
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("it has %d folders .dist-info, not one", len(found))
	}
	for info := range found {
		return info, p.checkDistInfo(info)
	}
	panic("packages: one folder is none")
}

// checkDistInfo compares the name of a .dist-info folder with the lock.
func (p lockedPackage) checkDistInfo(info string) error {
	name, version, ok := strings.Cut(info[:len(info)-len(distInfoSuffix)], "-")
	if !ok || !sameName(name, p.Name) {
		return fmt.Errorf("it is a wheel of %s, not of %s", rootdir.Quote(info), p.Name)
	}
	if !sameVersion(strings.ReplaceAll(version, "_", "-"), p.Version) { // PEP 427, "Escaping and Unicode"
		return fmt.Errorf("it is a wheel of %s, not of %s %s", rootdir.Quote(info), p.Name, p.Version)
	}
	return nil
}

// checkFile compares a wheel's file name with the lock.
func (p lockedPackage) checkFile(file string) error {
	parts := strings.SplitN(strings.TrimSuffix(file, ".whl"), "-", 3)
	if len(parts) < 3 || !sameName(parts[0], p.Name) || !sameVersion(strings.ReplaceAll(parts[1], "_", "-"), p.Version) {
		return fmt.Errorf("it is not a wheel of %s %s", p.Name, p.Version)
	}
	return nil
}

// sameVersion reports whether two texts mean the same version (PEP 440).
func sameVersion(a, b string) bool {
	v, errA := requirement.ParseVersion(a)
	w, errB := requirement.ParseVersion(b)
	return errA == nil && errB == nil && v.Same(w)
}

// checkIdentity checks that an unpacked wheel belongs to this package only: its data
// folders can contain another .dist-info, and a wheel in the store may have been fetched
// under another name.
func checkIdentity(root *os.Root, p lockedPackage) error {
	entries, err := rootdir.ReadDir(root, ".")
	if err != nil {
		return err
	}
	info := ""
	for _, e := range entries {
		switch {
		case !hasSuffixFold(e.Name(), distInfoSuffix):
			continue
		case info != "":
			return fmt.Errorf("it has a second .dist-info, %s beside %s", rootdir.Quote(e.Name()), rootdir.Quote(info))
		}
		info = e.Name()
	}
	if info == "" {
		return errors.New("it has no .dist-info")
	}
	if err := p.checkDistInfo(info); err != nil {
		return err
	}
	return p.checkMetadata(root, info+"/METADATA")
}

func hasSuffixFold(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}

// maxMetadata bounds how much of METADATA is read, in bytes. Name and version are in its
// first lines.
const maxMetadata = 4 << 20

func (p lockedPackage) checkMetadata(root *os.Root, file string) error {
	f, err := root.Open(file)
	if err != nil {
		return errors.New("it has no METADATA")
	}
	defer f.Close()
	name, version, err := readMetadata(io.LimitReader(f, maxMetadata))
	switch {
	case err != nil:
		return fmt.Errorf("reading its METADATA: %w", err)
	case !sameName(name, p.Name) || !sameVersion(version, p.Version):
		return fmt.Errorf("its METADATA is of %s %s, not of %s %s", rootdir.Quote(name), rootdir.Quote(version), p.Name, p.Version)
	}
	return nil
}

// readMetadata returns the fields Name and Version, which must occur once each (core
// metadata of packaging.python.org). Fields end at an empty line.
func readMetadata(in io.Reader) (name, version string, err error) {
	fields := map[string]string{}
	r := bufio.NewReader(in)
	for {
		line, more, err := r.ReadLine()
		if err != nil && !errors.Is(err, io.EOF) {
			return "", "", err
		}
		if len(line) == 0 {
			break
		}
		key, value, _ := strings.Cut(string(line), ":") // lines that go on with a field begin with space
		if key = strings.ToLower(strings.TrimRight(key, " \t")); key == "name" || key == "version" {
			if _, twice := fields[key]; twice {
				return "", "", fmt.Errorf("it has %s twice", key)
			}
			fields[key] = strings.TrimSpace(value)
		}
		for more && err == nil { // the rest of a long line
			_, more, err = r.ReadLine()
		}
	}
	return fields["name"], fields["version"], nil
}
