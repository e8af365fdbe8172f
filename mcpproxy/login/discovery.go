package login

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/toolcell/toolcell/internal/netguard"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
)

// maxDocument bounds a document that a server publishes.
const maxDocument = 1 << 20

// service is what a server and its authorization server publish about logins.
type service struct {
	resource  string   // names the server in requests for tokens (RFC 8707)
	scopes    []string // that the server knows
	published bool     // something is published; else the rest is guessed
	server    *oauthex.AuthServerMeta
}

// discover reads what the server at address, and then its authorization server,
// publish. metadata is the address that a challenge named, or empty.
//
// The SDK has the same steps inside its flows. Those do not report the resource that they
// asked for, which every renewal has to name, and its flow for client credentials names none.
func discover(ctx context.Context, client *http.Client, address, metadata string) (*service, error) {
	resource, unread := discoverResource(ctx, client, address, metadata)
	if unread != nil && !errors.Is(unread, errUnanswered) {
		return nil, unread
	}
	found := &service{published: resource != nil}
	if resource == nil {
		var err error
		if resource, err = guessResource(address); err != nil {
			return nil, err
		}
	}
	found.resource, found.scopes = resource.Resource, knownScopes(resource.ScopesSupported)
	issuer := resource.AuthorizationServers[0]
	server, err := discoverServer(ctx, client, issuer)
	switch {
	case err != nil:
		return nil, err
	case server != nil:
		found.server, found.published = server, true
	case unread != nil: // a guess would hide the reason
		return nil, unread
	default:
		found.server = guessServer(issuer)
	}
	return found, nil
}

// guessResource assumes that a server which publishes nothing is its own authorization
// server, and guessServer that its endpoints are those of the specification of 2025-03-26.
func guessResource(address string) (*oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	return &oauthex.ProtectedResourceMetadata{Resource: address, AuthorizationServers: []string{originOf(u)}}, nil
}

func guessServer(issuer string) *oauthex.AuthServerMeta {
	base := strings.TrimSuffix(issuer, "/")
	return &oauthex.AuthServerMeta{
		Issuer: issuer, AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token", RegistrationEndpoint: base + "/register",
		CodeChallengeMethodsSupported: []string{"S256"},
	}
}

func originOf(u *url.URL) string { return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String() } // with the zone of an address escaped

// discoverResource reads the metadata of the protected resource (RFC 9728): at the
// address of the challenge, else at the well-known ones. It returns nil if there is
// none.
func discoverResource(ctx context.Context, client *http.Client, address, metadata string) (*oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	wellKnown := originOf(u) + "/.well-known/oauth-protected-resource"
	var missed error
	for _, at := range []struct{ url, resource string }{
		{metadata, address}, {wellKnown + "/" + strings.TrimLeft(u.EscapedPath(), "/"), address}, {wellKnown, originOf(u)},
	} {
		if at.url == "" {
			continue
		}
		var found oauthex.ProtectedResourceMetadata
		ok, err := getDocument(ctx, client, at.url, &found)
		if errors.Is(err, errUnanswered) {
			missed = cmp.Or(missed, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if ok, err := isFor(&found, at.resource); err != nil {
			return nil, err
		} else if ok {
			return &found, nil
		}
	}
	return nil, missed
}

// isFor reports whether metadata is for a resource. With metadata of another host, a server
// could get a token that is made out for that host. Some name the whole host for each of its
// paths; that counts only at the address of the host itself.
func isFor(found *oauthex.ProtectedResourceMetadata, resource string) (bool, error) {
	named, err := url.Parse(found.Resource)
	wanted, wantedErr := url.Parse(resource)
	if err != nil || wantedErr != nil || originOf(named) != originOf(wanted) {
		return false, fmt.Errorf("the metadata of the server is that of another resource, %q", text.Printable(found.Resource, 200))
	}
	if strings.TrimSuffix(found.Resource, "/") != strings.TrimSuffix(resource, "/") {
		return false, nil
	}
	if len(found.AuthorizationServers) == 0 {
		return false, errors.New("the metadata of the server names no authorization server")
	}
	return true, nil
}

// discoverServer reads the metadata of an authorization server (RFC 8414, OpenID
// Connect Discovery). It returns nil if there is none.
func discoverServer(ctx context.Context, client *http.Client, issuer string) (*oauthex.AuthServerMeta, error) {
	if err := checkAddress(issuer); err != nil {
		return nil, fmt.Errorf("the authorization server: %w", err)
	}
	for _, at := range metadataAddresses(issuer) {
		var found oauthex.AuthServerMeta
		ok, err := getDocument(ctx, client, at, &found)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if strings.TrimSuffix(found.Issuer, "/") != strings.TrimSuffix(issuer, "/") {
			return nil, fmt.Errorf("the metadata of the authorization server is of the issuer %q, which does not match issuer %q",
				text.Printable(found.Issuer, 200), issuer)
		}
		for name, address := range map[string]string{
			"authorization": found.AuthorizationEndpoint, "token": found.TokenEndpoint, "registration": found.RegistrationEndpoint,
		} {
			if err := checkAddress(address); err != nil && address != "" {
				return nil, fmt.Errorf("the %s endpoint of the authorization server: %w", name, err)
			}
		}
		return &found, nil
	}
	return nil, nil
}

// metadataAddresses are where an authorization server may publish its metadata, in the
// order of the specification.
func metadataAddresses(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	path := strings.Trim(u.EscapedPath(), "/")
	origin := originOf(u)
	if path == "" {
		return []string{origin + "/.well-known/oauth-authorization-server", origin + "/.well-known/openid-configuration"}
	}
	return []string{
		origin + "/.well-known/oauth-authorization-server/" + path, origin + "/.well-known/openid-configuration/" + path,
		origin + "/" + path + "/.well-known/openid-configuration",
	}
}

// errUnanswered begins the error of a document that could not be read, but may exist.
var errUnanswered = errors.New("reading")

// getDocument reads a JSON document. It reports false if there is none.
func getDocument(ctx context.Context, client *http.Client, address string, into any) (bool, error) {
	if err := checkAddress(address); err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return false, fmt.Errorf("%w %s: %s", errUnanswered, text.Printable(address, 200), remote.PlainText(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 && resp.StatusCode < 500 {
		return false, nil
	}
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%w %s: the server answered %d", errUnanswered, text.Printable(address, 200), resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err == nil && len(body) > maxDocument {
		err = fmt.Errorf("it is larger than %s", text.Size(maxDocument))
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok && !strings.Contains(resp.Header.Get("Content-Type"), "json") {
		return false, nil // a page for people, as some answer every address with
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %s", text.Printable(address, 200), text.Printable(err.Error(), 200))
	}
	return true, nil
}

// checkAddress refuses addresses to which no secret may be sent, and which no browser
// may open: anything but https, except on this host.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Fragment != "" || u.User != nil:
		return fmt.Errorf("%q is no address", text.Printable(address, 200))
	case netguard.IsSafe(u):
		return nil
	}
	return fmt.Errorf("%q is not an https address", text.Printable(address, 200))
}
