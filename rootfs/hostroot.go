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

// hostDigest stands for a digest in the root of the host's own system.
const hostDigest = "host"

// hostRoot returns a root made of the host's own /usr: a skeleton of directories,
// links and a minimal /etc, and the bind mounts that fill it. The skeleton's name
// is the hash of all that, so that a changed host gets a new one and processes
// that see the same host share it.
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

// hostPlan is what a root of the host's own system consists of.
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

// hostFiles are the files of /etc that programs look into. The host's own would
// tell the code who its users are.
var hostFiles = map[string]string{
	"etc/passwd":        "root:x:0:0:root:/root:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/workspace:/usr/sbin/nologin\n",
	"etc/group":         "root:x:0:\nnogroup:x:65534:\n",
	"etc/hosts":         etcFiles["etc/hosts"],
	"etc/resolv.conf":   etcFiles["etc/resolv.conf"],
	"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}

// hostTop are the directories beside /usr, which are symlinks into it on a
// merged system and directories of their own on others.
var hostTop = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// hostEtc are the parts of /etc that programs in /usr cannot do without.
var hostEtc = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives",
	"ssl/certs", "pki/ca-trust/extracted", "pki/tls/certs", "mime.types", "python3*", "matplotlibrc", "fonts",
}

// planHost looks at the host, whose files are under sys; that is "/" except
// in tests.
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

// addBind adds a file or directory of the host at its own place. What the host
// does not have, or does not show us, is left out: what cannot be done without
// it is found by looking for the interpreter.
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

// covers reports whether a bind above has the target already.
func (p *hostPlan) covers(target string) bool {
	return slices.ContainsFunc(p.Binds, func(b hostBind) bool { return b.Dir && rootdir.Within(target, b.Target) })
}

// addLinkOrBind repeats the host's symlink if it leads into /usr, and binds
// anything else.
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

// hash names the plan by its content.
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

// makeBindTarget makes what a bind is mounted on. One inside another bind would have
// to exist there; covers has left those out.
func makeBindTarget(root *os.Root, b hostBind) error {
	name := strings.TrimPrefix(b.Target, "/")
	if b.Dir {
		return rootdir.MakeDirs(root, name)
	}
	return rootdir.MakeFile(root, name, "")
}
