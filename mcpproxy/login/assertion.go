package login

import (
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// assertionType says that a client proves itself with a signed assertion (RFC 7523,
// private_key_jwt).
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// assertionLife is how long an assertion may be used: as long as clocks may differ.
const assertionLife = time.Minute

// signAssertion returns a JWT with which the client of a private key proves itself to
// an authorization server, and to no other.
func signAssertion(privateKey, keyID, clientID, issuer string, now time.Time) (string, error) {
	method, key, err := parseKey(privateKey)
	if err != nil {
		return "", err
	}
	token := jwt.NewWithClaims(method, jwt.MapClaims{
		"iss": clientID, "sub": clientID, "aud": issuer, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	if keyID != "" {
		token.Header["kid"] = keyID
	}
	return token.SignedString(key)
}

var errKey = errors.New(`"privateKey" is not the text of a PEM file with an RSA, EC (P-256) or Ed25519 key without a passphrase`)

// parseKey reads a key, and returns how to sign with it. Variables of the environment often
// have "\n" for its lines.
func parseKey(text string) (method jwt.SigningMethod, key any, err error) {
	pem := []byte(strings.ReplaceAll(text, `\n`, "\n"))
	if key, err := jwt.ParseRSAPrivateKeyFromPEM(pem); err == nil {
		return jwt.SigningMethodRS256, key, nil
	}
	if key, err := jwt.ParseECPrivateKeyFromPEM(pem); err == nil && key.Curve == elliptic.P256() {
		return jwt.SigningMethodES256, key, nil
	}
	if key, err := jwt.ParseEdPrivateKeyFromPEM(pem); err == nil {
		return jwt.SigningMethodEdDSA, key, nil
	}
	return nil, nil, errKey
}
