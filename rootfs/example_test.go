package rootfs_test

import (
	"context"
	"fmt"
	"log"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/rootfs"
)

// The first call for a reference pulls and unpacks the image, further ones find
// it unpacked.
func ExampleStore_Ensure() {
	store, err := rootfs.Open("/var/cache/example/images", images.Puller{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	root, err := store.Ensure(context.Background(), "python:3.14-slim", nil)
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(root.Dir, root.Python)
}
