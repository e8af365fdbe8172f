package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/project"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/program"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs"
)

// closedSources are host folders that code never sees, nor anything in them or
// above them: they belong to the system or hold permissions.
var closedSources = []string{"/etc", "/proc", "/sys", "/dev", "/run", "/boot", "/root"}

// neededTargets are places that the sandbox needs unchanged, with everything in
// them.
var neededTargets = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/sys", "/dev", "/run", "/workspace/out",
}

// ownTargets are the sandbox's own places; only paths inside them may be
// mounted on.
var ownTargets = []string{"/tmp", "/workspace"}

// readMounts reads the folders that sandboxes may see.
func (s *Settings) readMounts(value string) error {
	for text := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		m, named, err := parseMount(strings.TrimSpace(text))
		missing, absent := errors.AsType[*absentMount](err)
		if err == nil || absent {
			err = clash(m, s.allMounts())
		}
		switch {
		case err != nil:
			return err
		case absent:
			s.absent = append(s.absent, missing)
		default:
			s.Mounts = append(s.Mounts, m)
		}
		s.sources = append(s.sources, named)
	}
	return nil
}

// parseMount reads SOURCE:TARGET, with :ro or :rw behind it. It returns the mount and, with its links, the
// source; also with an *absentMount.
func parseMount(text string) (m spec.Mount, source string, err error) {
	parts := strings.Split(text, ":")
	if len(parts) == 3 && (parts[2] == "ro" || parts[2] == "rw") {
		m.Writable = parts[2] == "rw"
		parts = parts[:2]
	}
	if len(parts) != 2 {
		return m, "", fmt.Errorf("%q is not SOURCE:TARGET[:ro|:rw], such as /data:/data:ro (a path cannot contain : or ,)", text)
	}
	if !filepath.IsAbs(parts[1]) {
		return m, "", fmt.Errorf("%q is relative: write an absolute path in the sandbox, such as /data", parts[1])
	}
	source, err = fullSource(parts[0])
	if err != nil {
		return m, "", err
	}
	m.Target = filepath.Clean(parts[1])
	if strings.Contains(parts[1]+"/", "/../") {
		return m, "", fmt.Errorf("the target %q has .. in it", parts[1])
	}
	if err := checkTarget(m.Target); err != nil {
		return m, "", err
	}
	// Symbolic links are resolved: only the real path counts.
	m.Source = resolved(source)
	info, err := os.Stat(source)
	if err != nil {
		return m, source, &absentMount{m, err}
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return m, "", fmt.Errorf("%q is neither a folder nor a file", source)
	}
	return m, source, nil
}

// fullSource returns the host's path that a source means: it is relative to the working
// directory, and begins with ~ where no shell has read it.
func fullSource(source string) (string, error) {
	if source == "" {
		return "", errors.New("there is no SOURCE before the colon")
	}
	if rest, inHome := strings.CutPrefix(source, "~/"); inHome {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%q: %w", source, err)
		}
		return filepath.Join(home, rest), nil
	}
	full, err := filepath.Abs(source)
	if err != nil {
		return "", fmt.Errorf("%q: there is no working directory: %w", source, err)
	}
	return full, nil
}

// checkLastingMounts refuses sources in a variable that depend on where a client starts this program.
func checkLastingMounts(variable, value string) error {
	if err := checkLasting(value); err != nil {
		return console.Invalidf("--env %s: %w", variable, err)
	}
	return nil
}

// checkLasting refuses mounts whose sources are relative.
func checkLasting(value string) error {
	for text := range strings.SplitSeq(value, ",") {
		source, _, _ := strings.Cut(strings.TrimSpace(text), ":")
		if source != "" && !filepath.IsAbs(source) && !strings.HasPrefix(source, "~/") {
			return relative(source)
		}
	}
	return nil
}

func checkTarget(target string) error {
	for _, needed := range neededTargets {
		if within(target, needed) || within(needed, target) && target != "/workspace" {
			return fmt.Errorf("nothing can be mounted at %q: the sandbox needs %s unchanged; use /data or /workspace/data", target, needed)
		}
	}
	if slices.Contains(ownTargets, target) {
		return fmt.Errorf("nothing can be mounted at %q, which is the sandbox's own; use %s/data", target, target)
	}
	return nil
}

// clash reports that two mounts conflict. A source inside another mount that
// code can write to could be replaced by a link.
func clash(m spec.Mount, others []spec.Mount) error {
	for _, o := range others {
		if within(m.Target, o.Target) || within(o.Target, m.Target) {
			return fmt.Errorf("%q and %q cannot be mounted one inside the other", o.Target, m.Target)
		}
		if o.Writable && o.Source != m.Source && within(m.Source, o.Source) || m.Writable && o.Source != m.Source && within(o.Source, m.Source) {
			return fmt.Errorf("%q and %q cannot both be mounted: one is inside the other, which code may write to", o.Source, m.Source)
		}
	}
	return nil
}

// CheckMounts refuses folders that code must not see: the host's own folders,
// the user's home as a whole, and where toolcell keeps its files and reads what
// it allows. It also refuses links in the folders that code or servers may write to; written
// returns those of servers, and is called only if there are mounts.
func (s Settings) CheckMounts(written func() []string) error {
	if len(s.sources) > 0 {
		if err := s.checkLinks(written()); err != nil {
			return s.Refuse("mounts", err)
		}
	}
	for _, m := range s.allMounts() {
		if err := s.checkSource(m); err != nil {
			return s.Refuse("mounts", err)
		}
		if s.Project == ProjectRead && (within(m.Target, project.Target) || within(project.Target, m.Target)) {
			return console.Invalidf("settings --mounts (TOOLCELL_MOUNTS) and --project (TOOLCELL_PROJECT): both use %s; give --project=off, or mount %q elsewhere, such as at /data", project.Target, m.Source)
		}
	}
	return nil
}

// checkLinks refuses sources whose links code or a server could have made.
func (s Settings) checkLinks(written []string) error {
	for _, m := range s.allMounts() {
		if m.Writable {
			written = append(slices.Clip(written), m.Source)
		}
	}
	for _, source := range s.sources {
		_, err := spec.FollowLinks(source, written)
		if planted, ok := errors.AsType[*spec.PlantedLinkError](err); ok {
			return fmt.Errorf("%q cannot be mounted: %w", source, planted)
		}
	}
	return nil
}

// checkSource refuses a mount of a folder that code must not see or change.
func (s Settings) checkSource(m spec.Mount) error {
	why := whyClosed(m.Source, s.OwnFiles())
	if exe := program.Self(); why == "" && m.Writable && exe != "" && within(exe, m.Source) {
		why = "code could replace this program, " + exe
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%q cannot be mounted: %s; choose a folder that has only what code may see", m.Source, why)
}

// checkMountsInFile refuses mounts for the user's file that serve would refuse. A mistake elsewhere in
// the settings does not matter.
func checkMountsInFile(value string) error {
	user, err := readUserFile()
	if err != nil {
		user = nil
	}
	s, err := read(sources{names: []string{"state-dir", "policy"}, user: user})
	if err != nil {
		return nil //nolint:nilerr // of another setting
	}
	if err := s.readMounts(value); err != nil {
		return err
	}
	if err := s.checkLinks(nil); err != nil {
		return err
	}
	for _, m := range s.allMounts() {
		if err := s.checkSource(m); err != nil {
			return err
		}
	}
	return s.firstAbsent()
}

// whyClosed returns why code must not see a folder, "" if it may. own are toolcell's own files.
func whyClosed(source string, own []string) string {
	if source == "/" {
		return "it is the whole file system"
	}
	if home, _ := os.UserHomeDir(); home != "" && within(resolved(home), source) {
		return "it is, or contains, your home directory"
	}
	for _, dir := range closedSources {
		if within(source, dir) || within(dir, source) {
			return dir + " is the system's"
		}
	}
	if file := InTheWay(source, own); file != "" {
		return "toolcell's own files are in " + file
	}
	return ""
}

// resolved returns a path with its symbolic links resolved, as far as it exists.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if up := filepath.Dir(path); up != path {
		return filepath.Join(resolved(up), filepath.Base(path))
	}
	return path
}

// Places are the mounts that an image has to have room for: those of --mounts, and the folder of
// clients, whose source is not known yet.
func (s Settings) Places() []spec.Mount {
	if s.Project != ProjectRead {
		return s.Mounts
	}
	return append(slices.Clip(s.Mounts), projectPlace)
}

// projectPlace stands for the mount of a client's folder. Nothing else may show "/".
var projectPlace = spec.Mount{Source: "/", Target: project.Target}

// showing says what a mount is for, in errors.
func showing(m spec.Mount) string {
	if m == projectPlace {
		return "showing the client's folder at " + m.Target + " (--project)"
	}
	return fmt.Sprintf("showing %q at %q (TOOLCELL_MOUNTS)", m.Source, m.Target)
}

// CheckRoom returns an error if a mount has no place in an image.
func CheckRoom(root *rootfs.Root, mounts []spec.Mount) error {
	for _, m := range mounts {
		if within(root.Python, m.Target) {
			return fmt.Errorf("%s: the image's Python is there, %s; choose another place", showing(m), root.Python)
		}
		for _, b := range root.Binds {
			if within(m.Target, b.Target) || within(b.Target, m.Target) {
				return fmt.Errorf("%s: the sandbox needs %s unchanged; choose another place", showing(m), b.Target)
			}
		}
		if slices.ContainsFunc(ownTargets, func(own string) bool { return within(m.Target, own) }) {
			continue
		}
		info, err := os.Stat(m.Source)
		if err == nil {
			err = root.CheckMountPoint(m.Target, info.IsDir())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", showing(m), err)
		}
	}
	return nil
}
