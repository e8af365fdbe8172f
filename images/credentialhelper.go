package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/docker/cli/cli/config/types"
	"github.com/docker/docker-credential-helpers/client"
	"github.com/docker/docker-credential-helpers/credentials"
)

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
