package images

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// hostPlatform returns this program's platform.
func hostPlatform() v1.Platform {
	p := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	switch runtime.GOARCH {
	case "arm":
		p.Variant = armVariant()
	case "arm64":
		p.Variant = "v8"
	}
	return p
}

// ParsePlatform parses OS/ARCH[/VARIANT], as docker and podman do, for Linux only. The
// architecture may have its name of uname(1).
func ParsePlatform(s string) (v1.Platform, error) {
	parts := strings.Split(strings.ToLower(s), "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return v1.Platform{}, errors.New("not OS/ARCH[/VARIANT], such as linux/arm64")
	}
	p := v1.Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	switch p.Architecture {
	case "x86_64":
		p.Architecture = "amd64"
	case "aarch64":
		p.Architecture = "arm64"
	}
	if p.OS != "linux" {
		return v1.Platform{}, errors.New("not a platform of Linux, such as linux/arm64")
	}
	return p, nil
}

// armVariant returns the version of the processor's instruction set. A program built for v6
// also runs on v7, so GOARM does not tell.
func armVariant() string {
	const oldest = "v6" // the oldest that Go's port still sees in the wild
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == "CPU architecture" {
			switch v := strings.TrimSpace(value); v {
			case "5", "6", "7":
				return "v" + v
			case "8", "AArch64":
				return "v7" // what a 32-bit program can use of it
			}
		}
	}
	return oldest
}

// runnableVariants lists the variants that run on a platform, best first.
func runnableVariants(p v1.Platform) []string {
	switch p.Architecture {
	case "arm":
		all := []string{"v7", "v6", "v5"}
		if i := slices.Index(all, p.Variant); i >= 0 {
			return append(all[i:], "")
		}
	case "arm64":
		if p.Variant == "" || p.Variant == "v8" {
			return []string{"v8", ""}
		}
		return []string{p.Variant, "v8", ""}
	case "amd64":
		// Nearly every machine in use has v2. To support v3 and v4 we would have to check
		// the processor, and images with those also have a plain one.
		if p.Variant == "" {
			return []string{"", "v1", "v2"}
		}
	}
	return []string{p.Variant, ""}
}

// chooseManifest returns the entry of an index that fits want best. An entry without a
// platform fits if it is the only one.
func chooseManifest(entries []descriptor, want v1.Platform) (descriptor, error) {
	if len(entries) == 1 && entries[0].Platform == nil {
		return entries[0], nil
	}
	for _, variant := range runnableVariants(want) {
		for _, d := range entries {
			if p := d.Platform; p != nil && p.OS == want.OS && p.Architecture == want.Architecture && p.Variant == variant {
				return d, nil
			}
		}
	}
	return descriptor{}, fmt.Errorf("the image has nothing for %s; it has %s", want, platformNames(entries))
}

// platformNames lists the platforms of an index for an error.
func platformNames(entries []descriptor) string {
	var names []string
	for _, d := range entries {
		// Attestations of a build are entries of "unknown/unknown".
		if d.Platform == nil || d.Platform.OS == "unknown" {
			continue
		}
		if n := d.Platform.String(); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "no platform at all"
	}
	return printableNames(names)
}

// checkPlatform refuses an image that is built for another platform. Many hand-made images
// do not say.
func checkPlatform(config *imageConfig, want v1.Platform) error {
	osFits := config.OS == "" || config.OS == want.OS
	archFits := config.Architecture == "" || config.Architecture == want.Architecture
	if osFits && archFits {
		return nil
	}
	return fmt.Errorf("the image is made for %s/%s and not for %s",
		printable(config.OS, 100), printable(config.Architecture, 100), want)
}
