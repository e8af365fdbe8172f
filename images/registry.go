package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// fromRegistry asks a registry for a manifest. Layers and configuration are
// fetched when they are read.
func (p Puller) fromRegistry(ctx context.Context, r Reference, want v1.Platform) (v1.Image, error) {
	img, err := p.fetch(ctx, r.remote, want)
	if err != nil {
		return nil, classify(ctx, err)
	}
	return img, nil
}

func (p Puller) fetch(ctx context.Context, ref name.Reference, want v1.Platform) (v1.Image, error) {
	d, err := remote.Get(ref, p.options(ctx)...)
	if err != nil {
		return nil, err
	}
	if !d.MediaType.IsIndex() {
		return d.Image()
	}
	index, err := d.ImageIndex()
	if err != nil {
		return nil, err
	}
	return fromIndex(index, want)
}

// fromIndex descends to the image that fits. The library's own choice knows
// neither variants nor a list of what there is.
func fromIndex(index v1.ImageIndex, want v1.Platform) (v1.Image, error) {
	for range maxNesting {
		m, err := index.IndexManifest()
		if err != nil {
			return nil, fmt.Errorf("reading index: %w", err)
		}
		d, err := choose(m.Manifests, want)
		if err != nil {
			return nil, err
		}
		if !d.MediaType.IsIndex() {
			return index.Image(d.Digest)
		}
		if index, err = index.ImageIndex(d.Digest); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the image's indexes are nested too deep")
}

func (p Puller) options(ctx context.Context) []remote.Option {
	keychain, inner := p.Keychain, p.Transport
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	if inner == nil {
		inner = defaultTransport
	}
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(keychain),
		remote.WithTransport(&guard{inner}),
		remote.WithUserAgent("runcell"),
		// One more try after a connection that broke, none after a timeout: a
		// network that swallows packets must not cost more than a few seconds.
		remote.WithRetryBackoff(remote.Backoff{Duration: 300 * time.Millisecond, Factor: 1, Steps: 2}),
		remote.WithRetryPredicate(broken),
		remote.WithRetryStatusCodes(),
	}
}

// broken reports a connection that ended in the middle.
func broken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// classify adds to a registry's error what a caller branches on and what the
// user can do.
func classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if answer := (*transport.Error)(nil); errors.As(err, &answer) {
		return classifyAnswer(answer, err)
	}
	if errors.Is(err, errPlain) || errors.Is(err, ErrUnavailable) {
		return err
	}
	// The errors of an HTTP client, whatever their cause, are net.Errors: no
	// name, no connection, a timeout, a proxy that says no.
	if netErr := net.Error(nil); errors.As(err, &netErr) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

func classifyAnswer(answer *transport.Error, err error) error {
	const login = "put credentials for the registry into ~/.docker/config.json, as `docker login` and `skopeo login --compat-auth-file` do"
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return fmt.Errorf("the registry refused access: the image is private or does not exist; %s: %w", login, err)
	case code == http.StatusNotFound:
		return fmt.Errorf("the registry has no such image: %w", err)
	case code == http.StatusTooManyRequests:
		return fmt.Errorf("%w: it limits the rate of pulls; wait, or %s: %w", ErrUnavailable, login, err)
	case code >= 500:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
