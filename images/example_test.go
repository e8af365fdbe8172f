package images_test

import (
	"context"
	"fmt"
	"log"

	"github.com/toolcell/toolcell/images"
)

func ExampleParse() {
	for _, ref := range []string{"python:3.14-slim", "oci:/srv/python:3.13", "host"} {
		r, err := images.Parse(ref)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Name, r.Local())
	}
	// Output:
	// index.docker.io/library/python:3.14-slim false
	// oci:/srv/python:3.13 true
	// host false
}

func ExampleParseMirrors() {
	mirrors, plain, err := images.ParseMirrors("docker.io=http://mirror.example/hub")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mirrors, plain)
	// Output: map[index.docker.io:[mirror.example/hub]] [mirror.example]
}

// The zero value takes the user's credentials and the platform of this host.
func ExamplePuller_Image() {
	img, err := images.Puller{}.Image(context.Background(), "python:3.14-slim")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(img.Digest)
}
