package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// fromRegistry asks a registry for a manifest, its mirrors first. Layers and
// configuration are fetched when they are read, from where the manifest was.
func (p Puller) fromRegistry(ctx context.Context, r Reference, want v1.Platform) (*found, error) {
	var failures []error
	ofMirror := p
	ofMirror.Login = nil
	for _, mirror := range p.mirrorsOf(r.remote) {
		img, err := ofMirror.fetchManifest(ctx, mirror, true, want)
		if err == nil || ctx.Err() != nil {
			return img, err
		}
		failures = append(failures, err)
	}
	img, err := p.fetchManifest(ctx, p.plainIfAllowed(r.remote), false, want)
	if err == nil || ctx.Err() != nil {
		return img, err
	}
	return nil, joinFailures(err, failures)
}

// fetchManifest reads a manifest from one registry, and follows indexes to the image that
// fits. The library's own choice ignores variants, and its error does not list what exists.
func (p Puller) fetchManifest(ctx context.Context, ref name.Reference, mirror bool, want v1.Platform) (*found, error) {
	repo, err := p.openRepository(ctx, ref.Context(), mirror)
	if err != nil {
		return nil, err
	}
	img, err := repo.fetchManifest(ref, want)
	return img, repo.explain(ctx, err)
}

func (r *repository) fetchManifest(ref name.Reference, want v1.Platform) (*found, error) {
	for range maxNesting {
		kind, doc, err := r.readDocument(ref)
		if err != nil {
			return nil, err
		}
		if !kind.IsIndex() {
			return &found{doc, r}, nil
		}
		chosen, err := chooseManifest(doc.Manifests, want)
		if err != nil {
			return nil, err
		}
		ref = ref.Context().Digest(chosen.Digest.hash.String())
	}
	return nil, errors.New("the image's indexes are nested too deep")
}

// accepted are the media types that are requested.
var accepted = strings.Join([]string{
	string(types.DockerManifestSchema2), string(types.OCIManifestSchema1), string(types.DockerManifestList), string(types.OCIImageIndex),
}, ",")

// readDocument requests a manifest or an index. The library would decode all of it, whatever
// its size.
func (r *repository) readDocument(ref name.Reference) (types.MediaType, *document, error) {
	resp, err := r.get(r.ctx, fmt.Sprintf("/v2/%s/manifests/%s", r.repo.RepositoryStr(), ref.Identifier()), http.Header{"Accept": {accepted}})
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest+1))
	switch {
	case err != nil:
		return "", nil, err
	case len(raw) > maxManifest:
		return "", nil, errTooLong
	}
	if byDigest, ok := ref.(name.Digest); ok {
		h, err := v1.NewHash(byDigest.DigestStr())
		if err == nil {
			err = verifyBytes(raw, h)
		}
		if err != nil {
			return "", nil, fmt.Errorf("reading manifest: %w", err)
		}
	}
	header, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	kind := types.MediaType(strings.TrimSpace(header))
	if kind == types.DockerManifestSchema1 || kind == types.DockerManifestSchema1Signed {
		return "", nil, errors.New("the image is in Docker's schema 1 of 2013; push it again with a tool of this decade")
	}
	doc, err := parseDocument(raw)
	if err != nil {
		return "", nil, fmt.Errorf("reading manifest: %w", err)
	}
	if !kind.IsImage() && !kind.IsIndex() { // a plain web server may say that it is JSON
		kind = doc.kind()
	}
	return kind, doc, nil
}

// A repository is one repository of a registry, logged in. It opens its blobs.
type repository struct {
	place
	ctx        context.Context
	repo       name.Repository
	client     *http.Client
	firstPause time.Duration // the wait before the second try
}

func (p Puller) openRepository(ctx context.Context, repo name.Repository, mirror bool) (*repository, error) {
	stored := &logins{file: p.AuthFile}
	at := place{shownName(repo.RegistryStr()), repo.RegistryStr(), stored, p.Log}
	if mirror {
		at.name = "the mirror " + at.name
	}
	var auth authn.Authenticator
	if p.Login != nil {
		auth = &authn.Basic{Username: p.Login.User, Password: p.Login.Password}
	} else {
		var err error
		if auth, err = stored.find(ctx, repo); err != nil {
			return nil, fmt.Errorf("reading credentials for %s: %w", at.name, err)
		}
	}
	inner, err := p.roundTripper(repo.RegistryStr())
	if err != nil {
		return nil, err
	}
	first := cmp.Or(p.Backoff, defaultBackoff)
	rt := transport.NewUserAgent(&retryTransport{&guardTransport{inner, p, (&url.URL{Host: repo.RegistryStr()}).Hostname()}, first}, "toolcell")
	rt, err = transport.NewWithContext(ctx, repo.Registry, auth, rt, []string{repo.Scope(transport.PullScope)})
	if err != nil {
		return nil, at.explain(ctx, err)
	}
	return &repository{at, ctx, repo, &http.Client{Transport: rt, CheckRedirect: checkRedirect}, first}, nil
}

// open implements blobs.
func (r *repository) open(blob string) (io.ReadCloser, error) {
	algorithm, hex, _ := strings.Cut(strings.TrimPrefix(blob, "blobs/"), "/")
	return r.download(fmt.Sprintf("/v2/%s/blobs/%s:%s", r.repo.RepositoryStr(), algorithm, hex))
}

// get requests a path of the registry.
func (r *repository) get(ctx context.Context, path string, header http.Header) (*http.Response, error) {
	u := url.URL{Scheme: r.repo.Scheme(), Host: r.repo.RegistryStr(), Path: path}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	// If the server compressed the response, the digest would differ.
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	if err := transport.CheckError(resp, http.StatusOK, http.StatusPartialContent); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// mirrorsOf lists the references to an image in mirrors, in order.
func (p Puller) mirrorsOf(ref name.Reference) []name.Reference {
	var all []name.Reference
	for _, m := range p.Mirrors[ref.Context().RegistryStr()] {
		rest := strings.TrimPrefix(ref.Name(), ref.Context().RegistryStr())
		if mirror, err := name.ParseReference(m + rest); err == nil {
			all = append(all, p.plainIfAllowed(mirror))
		}
	}
	return all
}

// plainIfAllowed lets the library try plain HTTP where the user allows it.
func (p Puller) plainIfAllowed(ref name.Reference) name.Reference {
	if !p.allowsPlain(ref.Context().RegistryStr()) {
		return ref
	}
	if plain, err := name.ParseReference(ref.Name(), name.Insecure); err == nil {
		return plain
	}
	return ref
}

// allowsPlain reports whether the user allows plain HTTP to a host, with or without a port.
func (p Puller) allowsPlain(host string) bool {
	bare := (&url.URL{Host: host}).Hostname()
	return slices.ContainsFunc(p.PlainHTTP, func(allowed string) bool {
		return allowed == host || strings.Trim(allowed, "[]") == bare
	})
}
