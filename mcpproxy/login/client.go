package login

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/toolcell/toolcell/internal/text"
	"golang.org/x/oauth2"
)

// client is the client that asks for a token, as the authorization server knows it.
type client struct {
	ClientID     string           `json:"clientId,omitempty"`
	ClientSecret string           `json:"clientSecret,omitempty"` // of one that registered itself
	AuthStyle    oauth2.AuthStyle `json:"authStyle,omitempty"`
}

var errNoClient = errors.New(`the authorization server registers no clients by itself; register a client with the service by hand, ` +
	`and write its "clientId", and its "clientSecret" if it has one, into "oauth" of the entry`)

// chooseClient returns the client that a login is for, in the order of the specification:
// the one of a metadata document, that of the entry, or one that registers itself.
func (s *Store) chooseClient(ctx context.Context, found *service, name, redirect string) (client, error) {
	switch {
	case s.entry.MetadataURL != "" && found.server.ClientIDMetadataDocumentSupported:
		return client{ClientID: s.entry.MetadataURL, AuthStyle: oauth2.AuthStyleInParams}, nil
	case s.entry.ClientID != "":
		return s.entryClient(found)
	case found.server.RegistrationEndpoint == "":
		return client{}, errNoClient
	}
	registered, err := oauthex.RegisterClient(ctx, found.server.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		ClientName: name, RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: registeredMethod(found), ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}, s.client)
	if err != nil {
		return client{}, fmt.Errorf("registering with the authorization server: %s; if it registers no clients by itself, register one with the service by hand, "+
			`and write its "clientId" into "oauth" of the entry`, text.Printable(err.Error(), 300))
	}
	style := authStyle(registered.ClientSecret, registered.TokenEndpointAuthMethod, found.server.TokenEndpointAuthMethodsSupported)
	return client{registered.ClientID, registered.ClientSecret, style}, nil
}

// registeredMethod is how a client registers to send its secret: it has none, where
// the server takes that.
func registeredMethod(found *service) string {
	supported := found.server.TokenEndpointAuthMethodsSupported
	for _, method := range []string{"none", "client_secret_post", "client_secret_basic"} {
		if slices.Contains(supported, method) {
			return method
		}
	}
	return "none"
}

// entryClient is the client of the entry. It is for one authorization server: another
// would learn the secret.
func (s *Store) entryClient(found *service) (client, error) {
	if s.entry.Issuer != "" && strings.TrimSuffix(s.entry.Issuer, "/") != strings.TrimSuffix(found.server.Issuer, "/") {
		return client{}, fmt.Errorf(`the server names the authorization server %q, and the client of the entry is for the "issuer" %q`,
			text.Printable(found.server.Issuer, 200), s.entry.Issuer)
	}
	return client{s.entry.ClientID, "", authStyle(s.entry.ClientSecret, "", found.server.TokenEndpointAuthMethodsSupported)}, nil
}
