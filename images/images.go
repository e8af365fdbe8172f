// Package images turns a reference into an Image. It reads registries, OCI
// layouts and the archives that `docker save` and `skopeo` write.
//
// It promises that the image fits the host's platform, that manifest and
// configuration are what their digests say, and that a layer read through Layer.Open
// ends without an error only if both its compressed and its uncompressed digest are
// right. It keeps nothing on disk; package rootfs does.
package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// maxConfig bounds a configuration, in bytes; real ones have some 10 KiB.
const maxConfig = 16 << 20

// Puller reads images. The zero value is ready for use.
type Puller struct {
	AuthFile  string            // of stored credentials; the usual files of Docker and podman if empty
	Platform  v1.Platform       // this host's if zero
	Transport http.RoundTripper // one with short timeouts if nil
	Backoff   time.Duration     // before the second try of a request; half a second if zero

	// Login is for the registry in a reference, not for its mirrors. It takes precedence
	// over stored credentials.
	Login *Login

	// Mirrors are asked before a registry, in order: "index.docker.io" →
	// "mirror.example/hub". See ParseMirrors.
	Mirrors map[string][]string
	// PlainHTTP are hosts, with or without a port, to which plain HTTP is allowed. It always
	// is to this host.
	PlainHTTP []string
	// MaxArchive bounds the decompressed size of an archive, in bytes; 16 GiB if 0.
	MaxArchive int64
	// CAFile has certificates, in PEM, to trust in addition to the system's.
	CAFile string
	// Log gets the errors of network libraries, at level Debug. It may be nil.
	Log *slog.Logger
}

// A Login has the user's credentials for one registry.
type Login struct{ User, Password string }

// Image returns the image that ref names. It reads only the manifest and configuration;
// layers are read later, under the same ctx if they come from a registry.
func (p Puller) Image(ctx context.Context, ref string) (*Image, error) {
	r, err := Parse(ref)
	if err != nil {
		return nil, err
	}
	img, err := p.open(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("reading image %q: %w", ref, err)
	}
	return img, nil
}

func (p Puller) open(ctx context.Context, r Reference) (*Image, error) {
	want := p.PlatformOrHost()
	var f *found
	var err error
	if _, statErr := os.Stat(r.Path); r.Local() && errors.Is(statErr, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file or folder", quoted(r.Path))
	}
	switch r.Kind {
	case Registry:
		f, err = p.fromRegistry(ctx, r, want)
	case Layout:
		f, err = fromLayout(dirBlobs(r.Path), pick{r.Tag, r.Digest}, want)
	case OCIArchive:
		var b *tarBlobs
		if b, err = openArchive(ctx, r.Path, p.maxArchive()); err == nil {
			f, err = fromLayout(b, pick{r.Tag, r.Digest}, want)
		}
	case DockerArchive:
		img, err := fromDockerArchive(ctx, r.Path, r.Tag, p.maxArchive(), want)
		return img, endCause(ctx, err)
	default:
		return nil, errors.New("it is not an image but the host itself")
	}
	if err != nil {
		return nil, err
	}
	img, err := newImage(ctx, f, want)
	if err != nil {
		return nil, endCause(ctx, sanitize(err))
	}
	return img, nil
}

// endCause returns the cause of the context's end, if it has ended.
func endCause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (p Puller) maxArchive() int64 { return cmp.Or(p.MaxArchive, 16<<30) }

// PlatformOrHost returns the platform that the images are chosen for.
func (p Puller) PlatformOrHost() v1.Platform {
	if p.Platform.Equals(v1.Platform{}) {
		return hostPlatform()
	}
	return p.Platform
}
