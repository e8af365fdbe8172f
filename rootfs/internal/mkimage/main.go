// Mkimage packs the tar of a Debian userland with Python as an OCI image
// layout of several gzipped layers, for the tests that need a real image.
//
//	mkimage -tag 3.14 userland.tar layout-dir
//
// The layers are cut the way images in the wild are: a base, shared data, the
// interpreter, what is installed on top, and a last one that only deletes, so
// that every pull of such an image goes through whiteouts, an opaque directory
// and a hard link. With -strip there is no bytecode, as in the official images
// of Python.
package main

import (
	"archive/tar"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	tag := flag.String("tag", "latest", "name of the image in the layout")
	strip := flag.Bool("strip", false, "leave out all bytecode")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: mkimage [-tag NAME] [-strip] USERLAND.tar LAYOUT-DIR")
		os.Exit(2)
	}
	if err := pack(flag.Arg(0), flag.Arg(1), *tag, *strip); err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}

// pack writes the image of one userland as the only image of a new layout.
func pack(userland, dir, tag string, strip bool) error {
	scratch, err := os.MkdirTemp(filepath.Dir(dir), ".layers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	tars, err := split(userland, scratch, strip)
	if err != nil {
		return fmt.Errorf("splitting %q: %w", userland, err)
	}
	trim := filepath.Join(scratch, "trim.tar")
	if err := writeTrim(trim); err != nil {
		return fmt.Errorf("writing the whiteouts: %w", err)
	}
	img, err := image(append(tars, trim))
	if err != nil {
		return fmt.Errorf("building the image: %w", err)
	}
	lay, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return lay.AppendImage(img,
		layout.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}),
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
}

// The layers, lowest first. Only a userland with packages for computing has
// something in all of them.
var layerNames = []string{"base", "libs", "share", "python", "arrays", "frames", "packages"}

// layerOf names the layer that a path belongs to.
func layerOf(name string) string {
	const packages = "usr/lib/python3/dist-packages/"
	switch {
	case strings.HasPrefix(name, packages+"numpy"), strings.HasPrefix(name, packages+"scipy"):
		return "arrays"
	case strings.HasPrefix(name, packages+"pandas"), strings.HasPrefix(name, packages+"sklearn"):
		return "frames"
	case strings.HasPrefix(name, packages):
		return "packages"
	case strings.HasPrefix(name, "usr/lib/") && strings.Contains(name, "-linux-gnu/"):
		return "libs"
	case strings.HasPrefix(name, "usr/bin/python"), strings.HasPrefix(name, "usr/lib/python"),
		strings.HasPrefix(name, "usr/local/bin/python"), strings.HasPrefix(name, "usr/local/lib/python"):
		return "python"
	case strings.HasPrefix(name, "usr/share/"):
		return "share"
	}
	return "base"
}

// split cuts the userland into one tar for each layer that has something, and
// returns them lowest first.
func split(userland, scratch string, strip bool) (files []string, err error) {
	in, err := os.Open(userland)
	if err != nil {
		return nil, err
	}
	defer in.Close()

	out := map[string]*tar.Writer{}
	for _, name := range layerNames {
		file := filepath.Join(scratch, name+".tar")
		f, err := os.Create(file)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out[name] = tar.NewWriter(f)
	}
	used, err := distribute(tar.NewReader(in), out, strip)
	if err != nil {
		return nil, err
	}
	for _, name := range layerNames {
		if used[name] {
			files = append(files, filepath.Join(scratch, name+".tar"))
		}
	}
	for _, w := range out {
		if err := w.Close(); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// distribute copies each entry to the tar of its layer, and says which layers
// have some.
func distribute(in *tar.Reader, out map[string]*tar.Writer, strip bool) (used map[string]bool, err error) {
	used = map[string]bool{}
	for {
		hdr, err := in.Next()
		if err == io.EOF {
			return used, nil
		}
		if err != nil {
			return nil, err
		}
		name := path.Clean(hdr.Name)
		if strip && strings.Contains(name+"/", "/__pycache__/") {
			continue
		}
		// A hard link lives beside its target: the layer above may be unpacked
		// where the one below is not.
		if hdr.Typeflag == tar.TypeLink {
			name = path.Clean(hdr.Linkname)
		}
		layer := layerOf(name)
		used[layer] = true
		if err := out[layer].WriteHeader(hdr); err != nil {
			return nil, err
		}
		if _, err := io.Copy(out[layer], in); err != nil {
			return nil, err
		}
	}
}

// writeTrim writes a layer that deletes what a slim image would not carry: the
// documentation by whiteouts and the package cache by an opaque directory.
func writeTrim(file string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := tar.NewWriter(f)
	for _, name := range []string{
		"usr/share/.wh.doc",
		"usr/share/.wh.man",
		"var/cache/.wh..wh..opq",
	} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			return err
		}
	}
	return w.Close()
}

// image makes an OCI image of layers, with the configuration that the official
// Python images have.
func image(tars []string) (v1.Image, error) {
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	for _, file := range tars {
		layer, err := tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		img, err = mutate.Append(img, mutate.Addendum{
			Layer:   layer,
			History: v1.History{CreatedBy: "mkimage: " + filepath.Base(file)},
		})
		if err != nil {
			return nil, err
		}
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Created = v1.Time{Time: time.Now().UTC().Truncate(time.Second)}
	config.Config.Env = []string{
		"PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG=C.UTF-8",
	}
	config.Config.Cmd = []string{"python3"}
	return mutate.ConfigFile(img, config)
}
