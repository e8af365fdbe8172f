package packages

import (
	"archive/zip"
	"context"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// maxFolders bounds the folders of a wheel.
const maxFolders = 50_000

// A place is a file or a folder of a wheel.
type place struct {
	path   string            // as it was first written
	inside map[string]*place // of a folder, by names in lower case; nil for a file
}

// checkPlaces checks that each file of a wheel has a place of its own. Two that differ in
// the case of letters alone are one to other programs, and a file cannot be a folder too.
func checkPlaces(ctx context.Context, files []*zip.File, info string) error {
	top, folders := &place{inside: map[string]*place{}}, 0
	for _, e := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		target, ok := installedAt(e.Name, info)
		if !ok {
			continue
		}
		made, err := top.add(target)
		if err != nil {
			return err
		}
		if folders += made; folders > maxFolders {
			return fmt.Errorf("it has more than %d folders", maxFolders)
		}
	}
	return nil
}

// add adds a file with its folders, and returns how many of those are new.
func (p *place) add(file string) (made int, err error) {
	for at := 0; ; {
		end, isFolder := len(file), false
		if length := strings.IndexByte(file[at:], '/'); length >= 0 {
			end, isFolder = at+length, true
		}
		name := strings.ToLower(file[at:end])
		next := p.inside[name]
		switch {
		case next == nil && isFolder:
			next = &place{file[:end], map[string]*place{}}
			p.inside[name] = next
			made++
		case next == nil:
			p.inside[name] = &place{path: file}
			return made, nil
		case isFolder != (next.inside != nil):
			return made, fmt.Errorf("%s is there as a file and as a folder", rootdir.Quote(file[:end]))
		case !isFolder:
			return made, fmt.Errorf("%s is there twice, also as %s", rootdir.Quote(file), rootdir.Quote(next.path))
		case next.path != file[:end]:
			return made, fmt.Errorf("the folder %s is there also as %s", rootdir.Quote(file[:end]), rootdir.Quote(next.path))
		}
		p, at = next, end+1
	}
}
