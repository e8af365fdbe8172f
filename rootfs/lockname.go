package rootfs

import "github.com/toolcell/toolcell/rootfs/cachedir"

// The names of locks. A root is locked under the name of its folder while it is
// made or checked.
const (
	tagsLock  = "refs"  // while a tag is written
	pullsLock = "pulls" // shared by pulls, so that no process removes their layers before their image is there
)

func layerLock(name string) string { return "layer-" + name } // while a layer is made
func pullLock(key string) string   { return "ref-" + key }    // while a reference is pulled

// ErrInUse is in the chain of an error when an image cannot be removed because
// a process may be running code on it.
var ErrInUse = cachedir.ErrInUse
