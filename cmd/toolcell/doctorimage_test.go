package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/rootfs"
)

// TestImageChecks: what doctor says of an image follows from the facts.
func TestImageChecks(t *testing.T) {
	const ref = "registry.example/team/py:3"
	unpacked := &rootfs.Image{Platform: "linux/amd64", Size: 138_700_000}
	reading := func(err error) error { return fmt.Errorf("reading image %q: %w", ref, err) }
	for name, tt := range map[string]struct {
		facts imageFacts
		want  []string // CODE status, and a part of the text
		cure  string   // a part of it
	}{
		"here": {
			imageFacts{here: true, image: unpacked, version: "3.14.0", took: 120 * time.Millisecond},
			[]string{"RC-IMAGE ok", "Python 3.14.0 of " + ref + " (linux/amd64, 132.3 MiB) ran in a sandbox, in 120 ms"},
			"",
		},
		"here, and large": {
			imageFacts{here: true, image: unpacked, unread: true, version: "3.14.0"},
			[]string{"RC-IMAGE ok", "compare its files with their digests with: toolcell images verify"},
			"",
		},
		"damaged": {
			imageFacts{here: true, image: unpacked, version: "3.14.0", damage: []string{"usr/bin/x: its content has changed", "b", "c"}},
			[]string{"RC-IMAGE degraded", "is damaged: usr/bin/x: its content has changed, and 2 more"},
			"'/opt/my tools/toolcell' images verify --repair " + ref,
		},
		"damaged, and does not run": {
			imageFacts{here: true, image: unpacked, damage: []string{"a"}, runErr: errors.New("no"), runCure: "try this"},
			[]string{"RC-IMAGE fatal", "did not run: no"},
			"images verify --repair " + ref,
		},
		"does not run": {
			imageFacts{here: true, image: unpacked, runErr: errors.New("no"), runCure: "try this"},
			[]string{"RC-IMAGE fatal", "did not run: no"},
			"try this",
		},
		"does not run, for no known reason": {
			imageFacts{here: true, image: unpacked, runErr: errors.New("no")},
			[]string{"RC-IMAGE fatal", "did not run: no"},
			" settings set image python:3.14-slim",
		},
		"does not run, and a variable names it": {
			imageFacts{here: true, image: unpacked, runErr: errors.New("no"), imageTyped: true},
			[]string{"RC-IMAGE fatal", "did not run: no"},
			"# or use the default image:\nexport TOOLCELL_IMAGE=python:3.14-slim",
		},
		"an old Python": {
			imageFacts{here: true, image: unpacked, version: "3.9.18"},
			[]string{"RC-IMAGE fatal", "has Python 3.9.18, and 3.10 is the oldest that works"},
			" settings set image python:3.14-slim",
		},
		"at its registry": {
			imageFacts{registry: "registry.example", found: rootfs.Lookup{Platform: "linux/amd64", Size: 48_000_000}},
			[]string{"RC-IMAGE ok", "is not here yet, and the first run fetches 45.8 MiB", "RC-REGISTRY ok", "registry.example, or a mirror of it, has the image"},
			"",
		},
		"in a folder": {
			imageFacts{found: rootfs.Lookup{Platform: "linux/amd64", Size: 48_000_000}},
			[]string{"RC-IMAGE ok", "can be read, and the first run unpacks it"},
			"",
		},
		"of no registry": {
			imageFacts{registry: "registry.example", err: reading(errors.New("the image has nothing for linux/amd64; it has linux/arm64"))},
			[]string{"RC-IMAGE fatal", ref + " cannot be used: the image has nothing for linux/amd64; it has linux/arm64; nothing can run without it"},
			" settings set image python:3.14-slim",
		},
		"pulling is switched off": {
			imageFacts{err: rootfs.ErrNotHere},
			[]string{"RC-IMAGE fatal", "the image is not here, and pulling is switched off"},
			"images pull " + ref,
		},
		"pulling is switched off, with a stand-in": {
			imageFacts{err: rootfs.ErrNotHere, fallback: true},
			[]string{"RC-IMAGE degraded", "code runs on this host's own Python instead"},
			"images pull " + ref,
		},
		"a slow registry": {
			imageFacts{registry: "registry.example", err: reading(errSlowRegistry)},
			[]string{"RC-REGISTRY fatal", ref + " is not here yet, and toolcell cannot reach registry.example (no answer within 5s); nothing can run without it"},
			" settings set image host",
		},
		"a registry that is asked each time": {
			imageFacts{registry: "registry.example", always: true, err: reading(errSlowRegistry)},
			[]string{"RC-REGISTRY fatal", ref + " is looked up each time (TOOLCELL_PULL=always), and toolcell cannot reach registry.example"},
			" settings set pull missing",
		},
		"no such file of certificates": {
			imageFacts{registry: "registry.example", fallback: true, err: reading(fmt.Errorf("reading certificates: %w", &fs.PathError{Op: "open", Path: "/ca.pem", Err: fs.ErrNotExist}))},
			[]string{"RC-REGISTRY degraded", "reading certificates: open /ca.pem: file does not exist; code runs on this host's own Python"},
			" settings set image host",
		},
	} {
		tt.facts.ref, tt.facts.self = ref, "/opt/my tools/toolcell"
		checks := tt.facts.checks()
		var got, cures []string
		for _, c := range checks {
			got = append(got, c.Code+" "+c.Status, c.Text)
			if cures = append(cures, c.Cure); c.Status == doctor.CheckFatal && c.Cure == "" {
				t.Errorf("%s: %s is fatal and has no cure", name, c.Code)
			}
		}
		for i, want := range tt.want {
			if len(got) != len(tt.want) || !strings.Contains(got[i], want) {
				t.Errorf("%s: got %q, want %q", name, got, tt.want)
				break
			}
		}
		if all := strings.Join(cures, "\n"); !strings.Contains(all, tt.cure) || tt.cure == "" != (strings.TrimSpace(all) == "") {
			t.Errorf("%s: cure %q, want %q", name, all, tt.cure)
		}
	}
}

func TestTooOldPythons(t *testing.T) {
	for version, want := range map[string]bool{"3.9.18": true, "3.10.0": false, "3.14.0": false, "2.7.18": true, "4.0": false, "": false, "3.x": false} {
		if tooOld(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}
