package oci

import (
	"context"
	"errors"
	"testing"

	"github.com/toolcell/toolcell/oci/spec"
)

// TestFolderIsLookedForAsLongAsTheStartGoesOn.
func TestFolderIsLookedForAsLongAsTheStartGoesOn(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	p := Process{FindProject: func(ctx context.Context) (*spec.Project, error) {
		return &spec.Project{Source: "/src"}, context.Cause(ctx)
	}}
	if h, err := p.findProject(ctx, spec.Host{}); err != nil || p.Project.Source != "/src" || len(h.Mounts) != 1 {
		t.Errorf("got %+v, %v", h.Mounts, err)
	}
	stopped := errors.New("stopped")
	cancel(stopped)
	if _, err := p.findProject(ctx, spec.Host{}); !errors.Is(err, stopped) {
		t.Errorf("after its end: %v", err)
	}
}
