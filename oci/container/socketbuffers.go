package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/opencontainers/cgroups"

	"github.com/toolcell/toolcell/oci/spec"
)

// LimitSocketBuffers limits the buffers of TCP and UDP sockets in a cgroup of version 1,
// before anything in it has a socket; libcontainer does not. Version 2 counts these buffers
// as memory (cgroup-v2.rst, "sock"). Data over the limit is dropped or delayed, but see
// limits.socketWatch.
func LimitSocketBuffers(m cgroups.Manager, l spec.Limits) error {
	f, err := os.OpenFile(filepath.Join(m.Path("memory"), "memory.kmem.tcp.limit_in_bytes"), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a kernel without kernel memory accounting, or an imitation
	}
	if err == nil {
		defer f.Close()
		_, err = f.WriteString(strconv.FormatInt(l.SocketBuffers(), 10))
	}
	if err != nil {
		return fmt.Errorf("limiting the buffers of sockets: %w", err)
	}
	return nil
}
