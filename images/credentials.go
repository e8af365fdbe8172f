package images

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/types"
	"github.com/docker/docker-credential-helpers/client"
	"github.com/docker/docker-credential-helpers/credentials"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// logins are the credentials that `docker login`, `podman login` and `skopeo login` have
// stored, including credential helpers. The library's own keychain looks at podman's file
// only if Docker has none.
type logins struct {
	file   string  // the only one to use, if not empty
	failed []error // of helpers; most images need none
}

// find returns the credentials for a repository. The first file with an entry for the
// repository, a part of its path, or the registry decides.
func (l *logins) find(ctx context.Context, target authn.Resource) (authn.Authenticator, error) {
	files := credentialFiles()
	if l.file != "" {
		files = []string{l.file}
	}
	for _, file := range files {
		auth, err := l.read(ctx, file, credentialKeys(target))
		if errors.Is(err, fs.ErrNotExist) && l.file == "" {
			continue
		}
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			return nil, err
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

// credentialKeys lists the keys under which a file may have a target, best first:
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

func (l *logins) read(ctx context.Context, file string, keys []string) (none types.AuthConfig, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return none, err
	}
	stored, err := config.LoadFromReader(bytes.NewReader(text))
	if line := lineOf(text, err); line > 0 {
		return none, fmt.Errorf("line %d: %w", line, explainJSON(err))
	}
	if err != nil {
		return none, explainJSON(err)
	}
	for _, key := range keys {
		if auth := storedFor(stored.AuthConfigs, key); auth != none {
			return auth, nil
		}
	}
	for _, key := range keys {
		helper := cmp.Or(stored.CredentialHelpers[key], stored.CredentialsStore)
		if helper == "" {
			continue
		}
		auth, err := askHelper(ctx, helper, key)
		if err != nil {
			l.failed = append(l.failed, fmt.Errorf("the credential helper %q, which %q names, failed: %w", helper, file, err))
			return none, nil
		}
		if auth != none {
			return auth, nil
		}
	}
	return none, nil
}

// storedFor returns the entry for exactly this key, or for a registry under its URL, as old
// versions of Docker stored it. The library would also use the credentials for one path of
// a registry for all others.
func storedFor(all map[string]types.AuthConfig, key string) (auth types.AuthConfig) {
	for _, scheme := range []string{"", "https://", "http://"} {
		for _, path := range []string{"", "/", "/v1/", "/v2/"} {
			auth = all[scheme+key+path]
			auth.ServerAddress = "" // filled in also where there are no credentials
			if auth != (types.AuthConfig{}) {
				return auth
			}
		}
	}
	return auth
}

// helperTimeout is for helpers that wait for the user, or for a missing bus.
const helperTimeout = 15 * time.Second

// tokenUser is the user name that marks a helper's answer as a token.
const tokenUser = "<token>"

// askHelper asks docker-credential-NAME for the credentials of a registry. It returns none
// if the helper has none or is not installed: it may have been removed with its program,
// such as Docker Desktop.
func askHelper(ctx context.Context, helper, registry string) (none types.AuthConfig, err error) {
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	found, err := client.Get(func(args ...string) client.Program {
		return newHelperProgram(ctx, "docker-credential-"+helper, args)
	}, registry)
	switch {
	case ctx.Err() != nil:
		return none, fmt.Errorf("it gave no answer in %s", helperTimeout)
	case credentials.IsErrCredentialsNotFound(err), err != nil && strings.Contains(err.Error(), exec.ErrNotFound.Error()):
		return none, nil
	case err != nil:
		return none, errors.New(printable(err.Error(), 300))
	case found.Username == tokenUser:
		return types.AuthConfig{IdentityToken: found.Secret}, nil
	}
	return types.AuthConfig{Username: found.Username, Password: found.Secret}, nil
}

// A helperProgram is a credential helper that ends with its context. Unlike the library's,
// it adds the helper's stderr to the error.
type helperProgram struct{ cmd *exec.Cmd }

func newHelperProgram(ctx context.Context, name string, args []string) helperProgram {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // for children that keep its output open
	return helperProgram{cmd}
}

func (h helperProgram) Input(in io.Reader) { h.cmd.Stdin = in }

func (h helperProgram) Output() ([]byte, error) {
	stdout, stderr := &limitedBuffer{max: maxHelperOutput}, &limitedBuffer{max: maxHelperOutput}
	h.cmd.Stdout, h.cmd.Stderr = stdout, stderr
	err := h.cmd.Run()
	switch said := strings.TrimSpace(string(stderr.kept)); {
	case err != nil && said != "":
		err = fmt.Errorf("%w: %s", err, said)
	case err == nil && stdout.cut:
		err = fmt.Errorf("it wrote more than %d bytes", maxHelperOutput)
	}
	return stdout.kept, err
}

// maxHelperOutput bounds how much of a helper's output is kept, in bytes. Tokens have a few
// thousand.
const maxHelperOutput = 64 << 10

// A limitedBuffer keeps only the first max bytes.
type limitedBuffer struct {
	kept []byte
	max  int
	cut  bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	fits := min(len(p), b.max-len(b.kept))
	b.kept = append(b.kept, p[:fits]...)
	b.cut = b.cut || fits < len(p)
	return len(p), nil
}
