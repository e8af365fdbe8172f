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

// places are those that files of a wheel have taken. Two that differ in the case of
// letters alone are one to other programs, and a file cannot be a folder too.
type places struct {
	taken   map[placeName]place
	folders int
}

// A placeName is a name in a folder, in lower case. The folder at the top is 0.
type placeName struct {
	folder int
	name   string
}

type place struct {
	path   string // as it was first written
	folder int    // its number; 0 for a file
}

// checkPlaces checks that each file of a wheel has a place of its own.
func checkPlaces(ctx context.Context, files []*zip.File, info string) error {
	p := &places{taken: map[placeName]place{}}
	for _, e := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		target, ok := installedAt(e.Name, info)
		if !ok {
			continue
		}
		if err := p.take(target); err != nil {
			return err
		}
	}
	return nil
}

func (p *places) take(file string) error {
	in := 0
	for at := 0; ; {
		length := strings.IndexByte(file[at:], '/')
		if length < 0 {
			return p.takeFile(placeName{in, strings.ToLower(file[at:])}, file)
		}
		folder, err := p.takeFolder(placeName{in, strings.ToLower(file[at : at+length])}, file[:at+length])
		if err != nil {
			return err
		}
		in, at = folder, at+length+1
	}
}

func (p *places) takeFile(name placeName, file string) error {
	other, there := p.taken[name]
	switch {
	case there && other.folder != 0:
		return bothKinds(file)
	case there:
		return fmt.Errorf("%s is there twice, also as %s", rootdir.Quote(file), rootdir.Quote(other.path))
	}
	p.taken[name] = place{path: file}
	return nil
}

func (p *places) takeFolder(name placeName, folder string) (number int, err error) {
	other, there := p.taken[name]
	switch {
	case there && other.folder == 0:
		return 0, bothKinds(folder)
	case there && other.path != folder:
		return 0, fmt.Errorf("the folder %s is there also as %s", rootdir.Quote(folder), rootdir.Quote(other.path))
	case there:
		return other.folder, nil
	case p.folders == maxFolders:
		return 0, fmt.Errorf("it has more than %d folders", maxFolders)
	}
	p.folders++
	p.taken[name] = place{folder, p.folders}
	return p.folders, nil
}

func bothKinds(name string) error {
	return fmt.Errorf("%s is there as a file and as a folder", rootdir.Quote(name))
}
