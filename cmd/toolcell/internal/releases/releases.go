// Package releases asks the registry that a program came from for its newest release. It
// sends nothing but the name toolcell, and is used only when the user asks for it.
package releases

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/toolcell/toolcell/internal/program"
	"github.com/toolcell/toolcell/internal/state"
)

// Registries are the addresses of the registries. The zero value is for the public ones.
type Registries struct {
	PyPI   string // a simple index (PEP 503) that has a JSON form (PEP 691)
	NPM    string
	GitHub string // the API
}

// User returns the registries that the user has set for pip, uv and npm, which are only
// asked for if the program came from there.
func User() Registries {
	return Registries{
		PyPI: cmp.Or(os.Getenv("UV_DEFAULT_INDEX"), os.Getenv("UV_INDEX_URL"), os.Getenv("PIP_INDEX_URL")),
		NPM:  cmp.Or(os.Getenv("npm_config_registry"), os.Getenv("NPM_CONFIG_REGISTRY"), npmrcRegistry()),
	}
}

// Bounds of what a registry may answer, and how long that may take.
const (
	maxAnswer  = 1 << 20
	maxNpmrc   = 1 << 20
	answerTime = 30 * time.Second
)

// npmrcRegistry returns the registry of the user's .npmrc, "" if it names none.
func npmrcRegistry() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	data, err := state.ReadRegular(filepath.Join(home, ".npmrc"), maxNpmrc)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == "registry" {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}

// Newest returns the newest release in a registry, without v, and the host that said so.
func (r Registries) Newest(ctx context.Context, in program.Registry) (version, host string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var address string
	find := newestInIndex
	accept := "application/vnd.pypi.simple.v1+json"
	switch in {
	case program.PyPI:
		address = strings.TrimSuffix(cmp.Or(r.PyPI, "https://pypi.org/simple"), "/") + "/toolcell/"
	case program.NPM:
		address = strings.TrimSuffix(cmp.Or(r.NPM, "https://registry.npmjs.org"), "/") + "/toolcell/latest"
		find, accept = ofPackage, "application/json"
	default:
		address = strings.TrimSuffix(cmp.Or(r.GitHub, "https://api.github.com"), "/") + "/repos/toolcell/toolcell/releases/latest"
		find, accept = ofTag, "application/vnd.github+json"
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return "", "", errors.New("the address of the registry cannot be read; it comes from UV_DEFAULT_INDEX, UV_INDEX_URL, PIP_INDEX_URL, npm_config_registry or ~/.npmrc")
	}
	body, err := get(ctx, at, accept)
	if err == nil {
		version, err = find(body)
	}
	if err != nil {
		return "", at.Host, fmt.Errorf("asking %s for the newest release: %w", at.Host, err)
	}
	return strings.TrimPrefix(version, "v"), at.Host, nil
}

// get returns the JSON at an address.
func get(ctx context.Context, at *url.URL, accept string) (_ []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", "toolcell")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			return nil, failed.Err // without the address, which may have a password
		}
		return nil, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return nil, errors.New("it has no toolcell")
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answered %q", resp.Status)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); !strings.HasSuffix(kind, "json") {
		return nil, fmt.Errorf("it answered with %q instead of JSON", kind)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	}
	return body, err
}

// ofPackage returns the version of a package of npm.
func ofPackage(body []byte) (string, error) {
	var answer struct{ Version string }
	err := decode(body, &answer, &answer.Version)
	return answer.Version, err
}

// ofTag returns the tag of a release on GitHub.
func ofTag(body []byte) (string, error) {
	var answer struct {
		Tag string `json:"tag_name"`
	}
	err := decode(body, &answer, &answer.Tag)
	return answer.Tag, err
}

// decode decodes an answer that has a version.
func decode(body []byte, answer any, version *string) error {
	if json.Unmarshal(body, answer) != nil || !semver.IsValid("v"+strings.TrimPrefix(*version, "v")) {
		return errors.New("its answer has no version")
	}
	return nil
}

// newestInIndex returns the newest version that an index has a wheel of, without those that
// were yanked (PEP 592) and those before a release.
func newestInIndex(body []byte) (string, error) {
	var answer struct {
		Files []struct {
			Filename string `json:"filename"`
			Yanked   any    `json:"yanked"` // false, or true or the reason
		} `json:"files"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", errors.New("its answer is not that of an index of packages")
	}
	var versions []string
	for _, f := range answer.Files {
		name, rest, _ := strings.Cut(f.Filename, "-")
		version, _, wheel := strings.Cut(rest, "-")
		if v := "v" + version; name == "toolcell" && wheel && semver.IsValid(v) && semver.Prerelease(v) == "" && !yanked(f.Yanked) {
			versions = append(versions, v)
		}
	}
	if len(versions) == 0 {
		return "", errors.New("it has no release of toolcell")
	}
	return slices.MaxFunc(versions, semver.Compare), nil
}

func yanked(value any) bool {
	reason, isText := value.(string)
	return value == true || isText && reason != ""
}
