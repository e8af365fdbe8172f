package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/program"
	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/toolcell/toolcell/rootfs/python"
)

// imageFacts are doctor's findings about the image that code runs on. The checks are
// functions of them.
type imageFacts struct {
	ref      string
	self     string // this program
	fallback bool   // the host's Python runs code while the image cannot be had
	always   bool   // the policy is to ask the registry in any case

	imageTyped, pullTyped bool // they are set by a flag or a variable, which override the user's file

	here     bool
	image    *rootfs.Image // in the store, nil if it is not there or unknown
	damage   []string
	unread   bool   // it is too large to be compared with its digests here
	version  string // of its Python, which ran
	took     time.Duration
	runErr   error
	runCure  string
	registry string        // that was asked, "" if none was
	found    rootfs.Lookup // where the image comes from
	err      error         // why it cannot be had
}

const (
	// registryTimeout is how long doctor waits for a registry.
	registryTimeout = 5 * time.Second
	// maxVerified bounds the images that are compared with their digests, which takes
	// seconds.
	maxVerified = 500 << 20
)

var errSlowRegistry = fmt.Errorf("no answer within %s", registryTimeout)

// imageChecks are doctor's lines on the image. No layer is fetched, and no registry
// asked about an image that is here. python is the error of the host's own.
func imageChecks(ctx context.Context, conf settings.Settings, log *slog.Logger, python error) []doctor.Check {
	if conf.Image == "host" {
		return nil // RC-SANDBOX runs it
	}
	f := imageFacts{ref: conf.Image, self: program.Self(), fallback: !conf.ImageNamed && python == nil, always: conf.Pull == rootfs.PullAlways}
	f.imageTyped, f.pullTyped = conf.Typed("image"), conf.Typed("pull")
	conf.LogLevel = max(conf.LogLevel, slog.LevelWarn)
	f.err = f.gather(ctx, conf, log)
	return f.checks()
}

func (f *imageFacts) gather(ctx context.Context, conf settings.Settings, log *slog.Logger) (err error) {
	ref, err := images.Parse(f.ref)
	if err != nil {
		return err
	}
	store, err := openStore(conf, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	f.here = store.Cached(ctx, f.ref) != nil
	if !f.here {
		if conf.Pull == rootfs.PullNever && !ref.Local() {
			return rootfs.ErrNotHere
		}
		f.registry = ref.RegistryName()
		ctx, cancel := context.WithTimeoutCause(ctx, registryTimeout, errSlowRegistry)
		defer cancel()
		if f.found, err = store.Lookup(ctx, f.ref); err != nil {
			return err
		}
		f.here = f.found.Here
	}
	if f.here {
		f.examine(ctx, conf, store)
	}
	return nil
}

// examine compares an image that is here with its digests, and runs its Python.
func (f *imageFacts) examine(ctx context.Context, conf settings.Settings, store *rootfs.Store) {
	name := f.ref
	if f.found.Digest != "" {
		name = f.found.Digest
	}
	if image, err := store.Find(name); err == nil {
		f.image, f.unread = image, image.Size > maxVerified
		if !f.unread {
			if f.damage, err = store.Verify(ctx, image); err != nil {
				f.damage = []string{err.Error()}
			}
		}
	}
	conf.Pull, conf.ImageNamed = rootfs.PullNever, true
	f.version, f.runCure, f.took, f.runErr = tryPython(ctx, conf)
}

func (f *imageFacts) checks() []doctor.Check {
	if f.err != nil {
		return []doctor.Check{f.failure()}
	}
	checks := []doctor.Check{f.check("RC-IMAGE")}
	if f.registry != "" {
		checks = append(checks, doctor.OK("RC-REGISTRY", f.registry+", or a mirror of it, has the image "+f.ref))
	}
	return checks
}

// check reports an image that can be had.
func (f *imageFacts) check(code string) doctor.Check {
	switch {
	case f.here && f.runErr != nil:
		cure := f.runCure
		if len(f.damage) > 0 || f.unread && cure == "" {
			cure = f.repair()
		}
		return doctor.Fatal(code, fmt.Sprintf("the Python of %s did not run: %v", f.name(), f.runErr), cmp.Or(cure, f.another()))
	case f.here && tooOld(f.version):
		return doctor.Fatal(code, fmt.Sprintf("%s has Python %s, and 3.%d is the oldest that works", f.name(), f.version, python.OldestMinor), f.another())
	case len(f.damage) > 0:
		return doctor.Degraded(code, fmt.Sprintf("%s is damaged: %s", f.name(), firstOf(f.damage)), f.repair())
	case f.here:
		said := fmt.Sprintf("Python %s of %s ran in a sandbox, in %d ms", f.version, f.name(), f.took.Milliseconds())
		if f.unread {
			said += "; compare its files with their digests with: toolcell images verify"
		}
		return doctor.OK(code, said)
	case f.registry == "":
		return doctor.OK(code, f.name()+" can be read, and the first run unpacks it")
	}
	return doctor.OK(code, fmt.Sprintf("%s is not here yet, and the first run fetches %s", f.name(), text.Size(f.found.Size)))
}

// failure reports an image that cannot be had.
func (f *imageFacts) failure() doctor.Check {
	c := doctor.Check{Code: "RC-IMAGE", Status: doctor.CheckFatal}
	why := strings.TrimPrefix(f.err.Error(), fmt.Sprintf("reading image %q: ", f.ref))
	if f.err == errSlowRegistry || errors.Is(f.err, errSlowRegistry) { //nolint:errorlint // as a whole it has no image in its text
		why = fmt.Sprintf("cannot reach %s (%v)", f.registry, errSlowRegistry)
	}
	consequence := "; nothing can run without it"
	if f.fallback {
		c.Status, consequence = doctor.CheckDegraded, "; code runs on this host's own Python instead"
	}
	advice := doctor.Advice(f.err)
	if f.networkFails() {
		asked := f.ref + " is not here yet"
		c.Cure = commented(advice) + "# without a network, use this host's own Python:\n" + f.set("image", "host", f.imageTyped)
		if f.always {
			asked = f.ref + " is looked up each time (TOOLCELL_PULL=always)"
			c.Cure = commented(advice) + "# if the image is here, look it up only in the background:\n" + f.set("pull", "missing", f.pullTyped)
		}
		c.Code, c.Text = "RC-REGISTRY", fmt.Sprintf("%s, and toolcell %s%s", asked, why, consequence)
		if !strings.HasPrefix(why, "cannot ") {
			c.Text = fmt.Sprintf("%s: %s%s", asked, why, consequence)
		}
		return c
	}
	c.Text = fmt.Sprintf("%s cannot be used: %s%s", f.ref, why, consequence)
	c.Cure = commented(advice) + f.another()
	if errors.Is(f.err, rootfs.ErrNotHere) {
		c.Cure = text.ShellWord(f.self) + " images pull " + text.ShellWord(f.ref)
	}
	return c
}

// networkFails reports whether the network or the registry is at fault, not the image.
func (f *imageFacts) networkFails() bool {
	var failed *images.RegistryError
	var path *fs.PathError // of certificates or credentials
	switch {
	case f.registry == "":
		return false
	case errors.As(f.err, &failed):
		return !failed.Answered()
	}
	return errors.Is(f.err, errSlowRegistry) || errors.As(f.err, &path)
}

// name is the image as a user knows it, with its platform and size.
func (f *imageFacts) name() string {
	platform, size := f.found.Platform, int64(0)
	if f.image != nil {
		platform, size = f.image.Platform, f.image.Size
	}
	if size > 0 {
		platform = strings.TrimPrefix(platform+", "+text.Size(size), ", ")
	}
	if platform == "" {
		return f.ref
	}
	return f.ref + " (" + platform + ")"
}

func (f *imageFacts) repair() string {
	return text.ShellWord(f.self) + " images verify --repair " + text.ShellWord(f.ref)
}

// another names an image that is known to be right.
func (f *imageFacts) another() string {
	if f.ref == settings.DefaultImage {
		return "# use this host's own Python:\n" + f.set("image", "host", f.imageTyped)
	}
	return "# or use the default image:\n" + f.set("image", settings.DefaultImage, f.imageTyped)
}

// set returns the command that changes a setting: in the user's file, which clients read too, unless
// something typed in this shell overrides that.
func (f *imageFacts) set(name, value string, typed bool) string {
	if typed {
		return "export " + settings.Find(name).Variable() + "=" + value
	}
	return text.ShellWord(f.self) + " settings set " + name + " " + value
}

func commented(advice string) string {
	if advice == "" {
		return ""
	}
	return "# " + strings.ReplaceAll(advice, "\n", "\n# ") + "\n"
}

func firstOf(all []string) string {
	if len(all) == 1 {
		return all[0]
	}
	return fmt.Sprintf("%s, and %d more", all[0], len(all)-1)
}

// tooOld reports whether a version of Python is known to be older than the runner
// supports.
func tooOld(version string) bool {
	v, err := requirement.ParseVersion(version)
	old, _ := requirement.ParseSpecifier(fmt.Sprintf("<3.%d", python.OldestMinor)) // which it is
	return err == nil && old.Allows(v)
}
