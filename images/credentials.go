package images

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/types"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// credentials are what `docker login`, `podman login` and `skopeo login` have
// stored, with the credential helpers named there. The library's own keychain
// looks at podman's file only if there is none of Docker's.
type credentials struct{}

// Resolve implements authn.Keychain. The first file that knows the repository,
// a part of its path, or the registry, decides.
func (credentials) Resolve(target authn.Resource) (authn.Authenticator, error) {
	for _, file := range credentialFiles() {
		auth, err := readCredentials(file, credentialKeys(target))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", file, err)
		}
		if auth != (types.AuthConfig{}) {
			return authn.FromConfig(authn.AuthConfig{
				Username: auth.Username, Password: auth.Password, Auth: auth.Auth,
				IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken,
			}), nil
		}
	}
	return authn.Anonymous, nil
}

// credentialFiles lists where credentials may be: containers-auth.json(5), and
// Docker's documentation of its CLI.
func credentialFiles() []string {
	var files []string
	add := func(dir string, name ...string) {
		if filepath.IsAbs(dir) {
			files = append(files, filepath.Join(append([]string{dir}, name...)...))
		}
	}
	add(os.Getenv("REGISTRY_AUTH_FILE"))
	add(os.Getenv("DOCKER_CONFIG"), "config.json")
	// MCP clients do not pass XDG_RUNTIME_DIR on.
	add(os.Getenv("XDG_RUNTIME_DIR"), "containers", "auth.json")
	add(fmt.Sprintf("/run/user/%d", os.Getuid()), "containers", "auth.json")
	home, _ := os.UserHomeDir()
	add(os.Getenv("XDG_CONFIG_HOME"), "containers", "auth.json")
	add(home, ".config", "containers", "auth.json")
	if os.Getenv("DOCKER_CONFIG") == "" {
		add(home, ".docker", "config.json")
	}
	return files
}

// credentialKeys lists, best first, under which names a file may know a target:
// registry/team/image, registry/team, registry.
func credentialKeys(target authn.Resource) []string {
	var keys []string
	for key := target.String(); key != "" && key != "."; {
		if key == name.DefaultRegistry {
			keys = append(keys, authn.DefaultAuthKey, "docker.io")
		}
		keys = append(keys, key)
		i := strings.LastIndexByte(key, '/')
		if i < 0 {
			break
		}
		key = key[:i]
	}
	return keys
}

func readCredentials(file string, keys []string) (none types.AuthConfig, err error) {
	f, err := os.Open(file)
	if err != nil {
		return none, err
	}
	defer f.Close()
	c, err := config.LoadFromReader(f)
	if err != nil {
		return none, err
	}
	for _, key := range keys {
		// What is stored under the very key; the library would also take the
		// credentials of one path of a registry for those of all.
		if auth, err := withoutAddress(c.AuthConfigs[key], nil); auth != none || err != nil {
			return auth, err
		}
	}
	for _, key := range keys {
		auth, err := withoutAddress(c.GetAuthConfig(key)) // asks the helpers
		if err != nil && strings.Contains(err.Error(), exec.ErrNotFound.Error()) {
			// A helper that went with the program that brought it, such as
			// Docker Desktop. Most images need no credentials.
			continue
		}
		if auth != none || err != nil {
			return auth, err
		}
	}
	return none, nil
}

// withoutAddress clears the field that the library fills in also where it has found no
// credentials.
func withoutAddress(auth types.AuthConfig, err error) (types.AuthConfig, error) {
	auth.ServerAddress = ""
	return auth, err
}
