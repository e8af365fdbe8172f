package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/fetch"
	"golang.org/x/sys/unix"
)

// A pinnedWheel is a wheel of uv, which contains one static program.
type pinnedWheel struct{ file, sha256 string }

const uvVersion = "0.13.9"

var uvWheels = map[string]pinnedWheel{
	"amd64": {"uv-" + uvVersion + "-py3-none-musllinux_1_1_x86_64.whl", "2c45530751517d6c3bbc69a19473f6effe47cce047bede01ffd8af7ea7b36b25"},
	"arm64": {"uv-" + uvVersion + "-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl", "5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe"},
}

const (
	maxUVWheel = 100 << 20
	maxUV      = 300 << 20
)

// ensureUV returns the path of uv: the user's own, or the pinned one, which is fetched
// from the index like any wheel.
func (j *job) ensureUV(ctx context.Context) (string, error) {
	if j.uv != "" {
		path, err := filepath.EvalSymlinks(j.uv)
		if err == nil {
			err = unix.Access(path, unix.X_OK)
		}
		if err != nil {
			return "", fmt.Errorf("using the uv that TOOLCELL_UV names: %w", err)
		}
		return path, nil
	}
	wheel, ok := uvWheels[runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("there is no pinned uv for %s: name one with TOOLCELL_UV", runtime.GOARCH)
	}
	dir, name := filepath.Join(j.dir, "uv"), "sha256-"+wheel.sha256
	path := filepath.Join(dir, name, "uv")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	unlock, err := j.cache.Wait(ctx, uvLock(name), state.Exclusive)
	if err != nil {
		return "", fmt.Errorf("waiting for another process that fetches uv: %w", err)
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	j.progress(Progress{Text: "fetching uv, which chooses versions"})
	err = cachedir.Build(dir, name, func(temp string) error {
		if err := j.fetchUV(ctx, wheel, temp); err != nil {
			return err
		}
		return os.Chmod(temp, 0o755) // a sandbox's IDs must be able to search it
	})
	if err != nil {
		return "", fmt.Errorf("fetching uv %s: %w; a uv that is here already can be named with TOOLCELL_UV", uvVersion, err)
	}
	return path, nil
}

// fetchUV extracts the program from a wheel of uv into a folder.
func (j *job) fetchUV(ctx context.Context, wheel pinnedWheel, dir string) error {
	address, err := j.find(ctx, j.Index+"/uv/", wheel.file)
	var host *fetch.HostError
	switch {
	case errors.As(err, &host):
		return &UnreachableError{j.Index, host.Reason}
	case err != nil:
		return fmt.Errorf("the package index %s: %w", j.Index, err)
	}
	file := filepath.Join(dir, "uv.whl")
	if err := j.client.Download(ctx, j.from, address, fetch.SHA256(wheel.sha256), file, maxUVWheel, func(int64) {}); err != nil {
		return err
	}
	z, _, closeZip, err := openZip(ctx, file)
	if err != nil {
		return err
	}
	defer func() { _ = closeZip() }() // it was only read
	entry := findEntry(z.File, "uv-"+uvVersion+".data/scripts/uv")
	if entry == nil {
		return errors.New("its wheel does not have the program")
	}
	program, err := entry.Open()
	if err != nil {
		return err
	}
	defer program.Close()
	out, err := os.OpenFile(filepath.Join(dir, "uv"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(&cachedir.ContextReader{Context: ctx, Inner: program}, maxUV))
	return errors.Join(err, out.Chmod(0o755), out.Sync(), out.Close(), os.Remove(file))
}

// find returns the address of a file on the page of a project.
func (j *job) find(ctx context.Context, page, file string) (address string, err error) {
	err = j.client.Retry(ctx, func() error {
		resp, err := j.client.Get(ctx, j.from, page, "application/vnd.pypi.simple.v1+json, text/html;q=0.1")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		to, err := findFile(resp, file)
		if err != nil {
			return err
		}
		address = to.String()
		return nil
	})
	return address, err
}
