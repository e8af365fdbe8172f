package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/toolcell/toolcell/internal/text"
)

// ErrUnavailable is in the chain of an error when the registry could not be reached or
// could not serve the request: no DNS entry, no route, no response, a status of 5xx, or a
// rate limit. The image may still exist.
var ErrUnavailable = errors.New("registry unavailable")

// A RegistryError explains in one sentence why an image could not be read from a registry.
// The errors of libraries are in its chain but not in its text.
type RegistryError struct {
	text, advice string
	unavailable  bool
	err          error
}

func (e *RegistryError) Error() string { return e.text }

// Answered reports whether the registry refused the image, so that the network is not at
// fault.
func (e *RegistryError) Answered() bool {
	answer := (*transport.Error)(nil)
	return !e.unavailable && errors.As(e.err, &answer)
}

// Advice says what the user can do about it.
func (e *RegistryError) Advice() string { return e.advice }

func (e *RegistryError) Unwrap() []error {
	if e.unavailable {
		return []error{ErrUnavailable, e.err}
	}
	return []error{e.err}
}

const (
	loginAdvice   = "put credentials for the registry into ~/.docker/config.json, as `docker login` and `skopeo login --compat-auth-file` do"
	networkAdvice = "check the network and the registry's name (behind a proxy, HTTPS_PROXY); offline, use --image host or an image of `toolcell images list`"
	laterAdvice   = "try again later, or name a mirror in TOOLCELL_REGISTRY_MIRRORS"
)

// A place is a registry or a mirror, for error messages.
type place struct {
	name   string // docker.io, or "the mirror mirror.example"
	host   string // as in URLs
	stored *logins
	log    *slog.Logger
}

// explain explains the error of a request to the place. The log gets the libraries' own
// text.
func (p place) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	refused := (*transport.Error)(nil)
	if ctx.Err() != nil && !(errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.As(err, &refused)) { // a refusal tells more than that time is up
		return context.Cause(ctx)
	}
	if known := (*RegistryError)(nil); errors.As(err, &known) {
		return err
	}
	plain := p.inWords(err)
	if known := (*RegistryError)(nil); p.log != nil && errors.As(plain, &known) {
		p.log.Debug("a registry could not be read", "registry", p.host, "error", withoutQueries(printable(err.Error(), 4000)))
	}
	return plain
}

func (p place) inWords(err error) error {
	// Registries on this host are also asked over HTTP, and answer that they want HTTPS.
	failed := (*url.Error)(nil)
	if errors.As(err, &failed) {
		if text, _ := distrust(p.name, failed.Err); text != "" {
			return p.unreachable(failed, err)
		}
	}
	if answer := (*transport.Error)(nil); errors.As(err, &answer) {
		return p.refusal(answer, err)
	}
	if wait := (*waitError)(nil); errors.As(err, &wait) {
		advice := laterAdvice
		if wait.code == http.StatusTooManyRequests {
			advice = "wait so long, or " + loginAdvice
		}
		return &RegistryError{fmt.Sprintf("%s has too much to do and asks to wait %s", p.name, wait.asked.Round(time.Second)), advice, true, err}
	}
	if rule := (*ruleError)(nil); errors.As(err, &rule) && firstIs(err, rule) {
		return &RegistryError{rule.text, rule.advice, false, err}
	}
	// Files, such as those of certificates, are of this host.
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return err
	}
	if failed != nil || errors.Is(err, ErrUnavailable) {
		return p.unreachable(failed, err)
	}
	return &answerError{err} // such as of a header that is not as it should be
}

// firstIs reports whether rule is the cause of the first of the failed requests that the
// library joins.
func firstIs(err error, rule *ruleError) bool {
	failed := (*url.Error)(nil)
	return !errors.As(err, &failed) || errors.Is(failed.Err, rule)
}

// refusal explains an answer with a status of 4xx or 5xx.
func (p place) refusal(answer *transport.Error, err error) error {
	says := words(answer)
	status := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		causes := []string{p.name + " refused access: the image is private or does not exist" + says}
		if p.stored != nil {
			for _, helper := range p.stored.failed {
				causes = append(causes, helper.Error())
			}
		}
		return &RegistryError{strings.Join(causes, "; "), loginAdvice, false, err}
	case code == http.StatusNotFound && answer.Request != nil && isForBlob(answer.Request):
		return &RegistryError{p.name + " has lost a part of the image" + says, "use another tag, or push the image again", false, err}
	case code == http.StatusNotFound:
		return &RegistryError{p.name + " has no such image" + says, "check the name and the tag", false, err}
	case code == http.StatusTooManyRequests:
		return &RegistryError{p.name + " limits the rate of pulls" + says, "wait, or " + loginAdvice, true, err}
	case code >= 500:
		return &RegistryError{p.name + " answers " + status + says, laterAdvice, true, err}
	}
	return &RegistryError{p.name + " answers " + status + says, "", false, err}
}

// words returns the registry's own message, but not a proxy's page.
func words(answer *transport.Error) string {
	if len(answer.Errors) == 0 || answer.Errors[0].Message == "" {
		return ""
	}
	return fmt.Sprintf(" (it says: %s)", printable(answer.Errors[0].Message, 200))
}

// withoutQueries removes the queries of URLs, which may contain signatures.
func withoutQueries(s string) string { return query().ReplaceAllString(s, "?…") }

var query = text.Pattern(`\?[^\s"]+`)

// A waitError means that a registry asks for a longer wait than maxWait.
type waitError struct {
	code  int
	asked time.Duration
}

func (e *waitError) Error() string {
	return fmt.Sprintf("status %d, asks to wait %s", e.code, e.asked)
}

// A ruleError means that guardTransport forbids a request.
type ruleError struct{ text, advice string }

func (e *ruleError) Error() string { return e.text }

// joinFailures explains why neither a registry nor its mirrors, which were asked first, served
// an image. Errors of those that answered, the most informative ones, come before errors of
// those that could not be reached.
func joinFailures(registry error, mirrors []error) error {
	var answered, unreachable []error
	for _, err := range append([]error{registry}, mirrors...) {
		if errors.Is(err, ErrUnavailable) {
			unreachable = append(unreachable, err)
		} else {
			answered = append(answered, err)
		}
	}
	all := slices.Concat(answered, unreachable)
	joined := all[0]
	for _, err := range all[1:] {
		joined = fmt.Errorf("%w; %w", joined, err)
	}
	return joined
}
