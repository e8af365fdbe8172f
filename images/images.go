// Package images turns a reference into a v1.Image. It reads registries, OCI
// layouts and the archives that `docker save` and `skopeo` write.
//
// It promises that the image fits the host's platform, that manifest and
// configuration are what their digests say, and that a layer read through OpenLayer
// (or the layer's own Uncompressed) ends without an error only if both its
// compressed and its uncompressed digest are right. It keeps nothing on disk;
// package rootfs does.
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

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	maxLayers = 1000     // Docker stops at 127
	maxConfig = 16 << 20 // bytes of a configuration; real ones have some 10 KiB
)

// Puller reads images. The zero value is ready for use.
type Puller struct {
	Keychain  authn.Keychain    // the user's stored credentials if nil
	AuthFile  string            // has the stored credentials, instead of the usual files, if it is not empty
	Platform  v1.Platform       // this host's if zero
	Transport http.RoundTripper // one with short timeouts if nil
	Backoff   time.Duration     // before the second try of a request; half a second if zero

	// Login is for the registry that a reference names, and not for its mirrors. If
	// it is not nil it goes before stored credentials.
	Login *Login

	// Mirrors are asked before a registry, in order: "index.docker.io" →
	// "mirror.example/hub". See ParseMirrors.
	Mirrors map[string][]string
	// PlainHTTP are hosts, with or without a port, beyond this one that may be
	// spoken to unencrypted.
	PlainHTTP []string
	// MaxArchive is how many bytes a compressed archive may have when it is
	// decompressed; 16 GiB if it is 0.
	MaxArchive int64
	// CAFile has certificates, in PEM, that count beside the system's.
	CAFile string
	// Log gets, at the level Debug, what the network's libraries say about a failure. It may be nil.
	Log *slog.Logger
}

// A Login is what a user gave for one registry.
type Login struct{ User, Password string }

// Image returns the image that ref names, as far as its manifest and its
// configuration. Layers are read later, under the same ctx if they come from a
// registry.
func (p Puller) Image(ctx context.Context, ref string) (v1.Image, error) {
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

func (p Puller) open(ctx context.Context, r Reference) (v1.Image, error) {
	want := p.PlatformOrHost()
	var img v1.Image
	var err error
	if _, statErr := os.Stat(r.Path); r.Local() && errors.Is(statErr, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file or folder", quoted(r.Path))
	}
	switch r.Kind {
	case Registry:
		img, err = p.fromRegistry(ctx, r, want)
	case Layout:
		img, err = fromLayout(dirBlobs(r.Path), pick{r.Tag, r.Digest}, want)
	case OCIArchive:
		img, err = fromOCIArchive(r.Path, pick{r.Tag, r.Digest}, p.maxArchive(), want)
	case DockerArchive:
		img, err = fromDockerArchive(r.Path, r.Tag, p.maxArchive())
	default:
		return nil, errors.New("it is not an image but the host itself")
	}
	if err != nil {
		return nil, err
	}
	if err := checkImage(img, want); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, sanitize(err)
	}
	return verifiedImage{img}, nil
}

func (p Puller) maxArchive() int64 { return cmp.Or(p.MaxArchive, 16<<30) }

// PlatformOrHost returns the platform that the images are chosen for.
func (p Puller) PlatformOrHost() v1.Platform {
	if p.Platform.Equals(v1.Platform{}) {
		return hostPlatform()
	}
	return p.Platform
}

// checkImage refuses an image whose manifest and configuration do not belong
// together, or that is made for another platform.
func checkImage(img v1.Image, want v1.Platform) error {
	m, err := img.Manifest()
	if err != nil {
		return fmt.Errorf("reading manifest: %w", plainJSON(err))
	}
	if kind := artifactKind(m); kind != "" {
		return fmt.Errorf("it is an artifact of the type %s, not an image", foreign(kind, 200))
	}
	switch {
	case len(m.Layers) == 0:
		return errors.New("the image has no layers")
	case len(m.Layers) > maxLayers:
		return fmt.Errorf("the image has %d layers, more than the limit of %d", len(m.Layers), maxLayers)
	case m.Config.Size < 0 || m.Config.Size > maxConfig:
		return fmt.Errorf("the image's configuration has %d bytes, beyond the limit of %d", m.Config.Size, maxConfig)
	}
	for _, l := range m.Layers {
		if l.Size < 0 { // which the library would take for "any size"
			return fmt.Errorf("layer %s has the size %d", l.Digest, l.Size)
		}
	}
	raw, err := img.RawConfigFile()
	if err != nil {
		return fmt.Errorf("reading configuration: %w", err)
	}
	if err := verifyBytes(raw, m.Config.Digest); err != nil {
		return fmt.Errorf("reading configuration: %w", err)
	}
	if int64(len(raw)) != m.Config.Size {
		return fmt.Errorf("%w: the configuration has %d bytes and not %d", errCorrupt, len(raw), m.Config.Size)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return fmt.Errorf("reading configuration: %w", plainJSON(err))
	}
	if len(config.RootFS.DiffIDs) != len(m.Layers) {
		return fmt.Errorf("the image has %d layers but its configuration names %d",
			len(m.Layers), len(config.RootFS.DiffIDs))
	}
	return checkPlatform(config, want)
}

// artifactKind returns what a manifest is for if not for an image: registries also
// keep charts, signatures and models (OCI image-spec, manifest.md, "Guidelines for
// Artifact Usage"). Old tools write images whose configuration has another type, or
// none.
func artifactKind(m *v1.Manifest) string {
	switch kind := m.Config.MediaType; {
	case m.MediaType != "" && !m.MediaType.IsImage():
		return string(m.MediaType)
	case kind == "" || kind.IsConfig() || kind == "application/octet-stream":
		return ""
	case m.ArtifactType != "":
		return m.ArtifactType
	default:
		return string(kind)
	}
}
