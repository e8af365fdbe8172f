package images

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// ErrUnavailable is in the chain of an error when the registry could not be
// reached or could not serve: no name, no route, no answer, an answer of 5xx,
// or a rate limit. The image may exist all the same.
var ErrUnavailable = errors.New("registry unavailable")

const loginAdvice = "put credentials for the registry into ~/.docker/config.json, as `docker login` and `skopeo login --compat-auth-file` do"

// classify adds to a registry's error what a caller branches on and what the
// user can do.
func classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// The library joins the errors of two tries as text.
	if strings.Contains(err.Error(), x509.UnknownAuthorityError{}.Error()) {
		return fmt.Errorf("%w; if the registry has a certificate of your own, name its CA's file in MCP_BRIDGE_REGISTRY_CA; if no registry works, install the package ca-certificates", err)
	}
	if done := (*answerError)(nil); errors.As(err, &done) {
		return err
	}
	if answer := (*transport.Error)(nil); errors.As(err, &answer) {
		return classifyAnswer(answer, err)
	}
	if errors.Is(err, errPlain) || errors.Is(err, ErrUnavailable) {
		return &answerError{err} // a redirect may have led there
	}
	// The errors of an HTTP client, whatever their cause, are net.Errors: no
	// name, no connection, a timeout, a proxy that says no.
	// So are those of files, which are of this host.
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return err
	}
	if netErr := net.Error(nil); errors.As(err, &netErr) {
		return fmt.Errorf("%w: %w", ErrUnavailable, &answerError{err})
	}
	return &answerError{err} // such as of a header that is not as it should be
}

func classifyAnswer(answer *transport.Error, err error) error {
	err = &answerError{err}
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return fmt.Errorf("the registry refused access: the image is private or does not exist; %s: %w", loginAdvice, err)
	case code == http.StatusNotFound && answer.Request != nil && isForBlob(answer.Request):
		return fmt.Errorf("the registry has lost a part of the image: %w", err)
	case code == http.StatusNotFound:
		return fmt.Errorf("the registry has no such image: %w", err)
	case code == http.StatusTooManyRequests:
		return fmt.Errorf("%w: it limits the rate of pulls; wait, or %s: %w", ErrUnavailable, loginAdvice, err)
	case code >= 500:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// An answerError is an error with a registry's own words, which may be anything.
type answerError struct{ err error }

func (e *answerError) Error() string { return foreign(e.err.Error(), 1000) }
func (e *answerError) Unwrap() error { return e.err }

// foreign makes text from an image or a registry fit for a message: it is quoted
// unless all of it can be printed, and cut to so many bytes.
func foreign(s string, most int) string {
	cut := ""
	if len(s) > most {
		s, cut = strings.ToValidUTF8(s[:most], ""), "…"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		s = strconv.Quote(s)
	}
	return s + cut
}

// quoted quotes text that a user gave, cut like foreign text.
func quoted(s string) string {
	const most = 500
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// foreignNames lists names from an image, the first ones if they are many.
func foreignNames(names []string) string {
	const most = 20
	var out []string
	for _, n := range names[:min(len(names), most)] {
		out = append(out, foreign(n, 100))
	}
	if len(names) > most {
		out = append(out, fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(out, ", ")
}
