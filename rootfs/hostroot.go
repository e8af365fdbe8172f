package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/rootfs/python"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// hostDigest takes the place of a digest for the host's own system.
const hostDigest = "host"

// hostRoot returns a root made of the host's own /usr: a skeleton of directories, links and
// a minimal /etc, and bind mounts that fill it. The skeleton is named by the hash of all
// that, so that processes that see the same host share it and a changed host gets a new
// one.
func hostRoot(ctx context.Context, d imageDir) (*Root, error) {
	plan, err := planHost(ctx, "/")
	if err != nil {
		return nil, fmt.Errorf("using the host's own system as image: %w", err)
	}
	root, err := d.ensure(ctx, "host-"+plan.hash(), hostDigest, "host", plan.makeSkeleton)
	if err != nil {
		return nil, fmt.Errorf("using the host's own system as image: %w", err)
	}
	return root, nil
}

// hostPlan describes a root made of the host's own system.
type hostPlan struct {
	Links  map[string]string // path relative to the root → target
	Binds  []hostBind
	Python string
}

type hostBind struct {
	Bind
	Dir bool // else a file
}

var hostEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}

// hostFiles are the files of /etc that programs read. The host's own would reveal its users
// to the code.
var hostFiles = map[string]string{
	"etc/passwd":        "root:x:0:0:root:/root:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/workspace:/usr/sbin/nologin\n",
	"etc/group":         "root:x:0:\nnogroup:x:65534:\n",
	"etc/hosts":         etcFiles["etc/hosts"],
	"etc/resolv.conf":   etcFiles["etc/resolv.conf"],
	"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}

// hostTop are the directories beside /usr: symlinks into it on a merged system, real
// directories on others.
var hostTop = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// hostEtc are the parts of /etc that programs in /usr need.
var hostEtc = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives",
	"ssl/certs", "pki/ca-trust/extracted", "pki/tls/certs", "mime.types", "python3*", "matplotlibrc", "fonts",
}

// planHost examines the host, whose root directory is sys: "/" except in tests.
func planHost(ctx context.Context, sys string) (*hostPlan, error) {
	p := &hostPlan{Links: map[string]string{}}
	p.addBind(sys, "usr")
	for _, name := range hostTop {
		p.addLinkOrBind(sys, name)
	}
	for _, pattern := range hostEtc {
		found, err := filepath.Glob(filepath.Join(sys, "etc", pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			p.addBind(sys, strings.TrimPrefix(file, filepath.Clean(sys)))
		}
	}
	p.addLinkOrBind(sys, "etc/localtime")
	python, err := python.FindOnHost(ctx, sys)
	if err != nil {
		return nil, err
	}
	p.Python = python.Exe
	for _, dir := range python.Dirs {
		p.addBind("/", dir)
	}
	slices.SortFunc(p.Binds, func(a, b hostBind) int { return strings.Compare(a.Target, b.Target) })
	return p, nil
}

// addBind adds a file or directory of the host under its own path. What does not exist or
// cannot be read is left out: the search for the interpreter reports if it was needed.
func (p *hostPlan) addBind(sys, name string) {
	target := filepath.Join("/", name)
	source, err := filepath.EvalSymlinks(filepath.Join(sys, name))
	if err != nil || p.covers(target) {
		return
	}
	info, err := os.Stat(source)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return
	}
	p.Binds = append(p.Binds, hostBind{Bind{Source: source, Target: target}, info.IsDir()})
}

// covers reports whether the target is inside a bind.
func (p *hostPlan) covers(target string) bool {
	return slices.ContainsFunc(p.Binds, func(b hostBind) bool { return b.Dir && rootdir.Within(target, b.Target) })
}

// addLinkOrBind copies the host's symlink if it leads into /usr, and binds anything else.
func (p *hostPlan) addLinkOrBind(sys, name string) {
	target, err := os.Readlink(filepath.Join(sys, name))
	leads := target
	if !filepath.IsAbs(leads) {
		leads = filepath.Join("/", filepath.Dir(name), target)
	}
	if err != nil || !rootdir.Within(filepath.Clean(leads), "/usr") {
		p.addBind(sys, name)
		return
	}
	p.Links[name] = target
}

// hash returns a hash of the plan's content.
func (p *hostPlan) hash() string {
	content, err := json.Marshal(struct {
		Format int
		Plan   *hostPlan
		Files  map[string]string
		Env    []string
	}{format, p, hostFiles, hostEnv})
	if err != nil {
		panic("rootfs: a hostPlan must be plain values: " + err.Error())
	}
	return fmt.Sprintf("%x", sha256.Sum256(content))
}

// makeSkeleton makes the skeleton in an empty directory.
func (p *hostPlan) makeSkeleton(dir string) (*record, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := makeMountPoints(root); err != nil {
		return nil, err
	}
	for _, b := range p.Binds {
		if err := makeBindTarget(root, b); err != nil {
			return nil, fmt.Errorf("making mount point %s: %w", b.Target, err)
		}
	}
	for name, target := range p.Links {
		if err := rootdir.MakeDirs(root, filepath.Dir(name)); err != nil {
			return nil, err
		}
		if err := root.Symlink(target, name); err != nil {
			return nil, err
		}
	}
	for name, content := range hostFiles {
		if err := rootdir.MakeFile(root, name, content); err != nil {
			return nil, err
		}
	}
	rec := &record{Env: hostEnv, Python: p.Python}
	for _, b := range p.Binds {
		rec.Binds = append(rec.Binds, b.Bind)
	}
	return rec, nil
}

// makeBindTarget makes the mount point of a bind. One inside another bind would have to
// exist there; covers has left those out.
func makeBindTarget(root *os.Root, b hostBind) error {
	name := strings.TrimPrefix(b.Target, "/")
	if b.Dir {
		return rootdir.MakeDirs(root, name)
	}
	return rootdir.MakeFile(root, name, "")
}
