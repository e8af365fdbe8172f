package login

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"time"
)

// assertionType says that a client proves itself with a signed assertion (RFC 7523,
// private_key_jwt).
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// assertionLife is how long an assertion may be used: as long as clocks may differ.
const assertionLife = time.Minute

// signAssertion returns a JWT with which the client of a private key proves itself to
// an authorization server, and to no other.
func signAssertion(privateKey, keyID, clientID, issuer string, now time.Time) (string, error) {
	key, err := parseKey(privateKey)
	if err != nil {
		return "", err
	}
	header := map[string]string{"typ": "JWT", "alg": key.algorithm}
	if keyID != "" {
		header["kid"] = keyID
	}
	head, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss": clientID, "sub": clientID, "aud": issuer, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return "", err
	}
	signed := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(claims)
	signature, err := key.sign([]byte(signed))
	if err != nil {
		return "", err
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// signingKey is a private key and what signing with it is called.
type signingKey struct {
	algorithm string
	sign      func([]byte) ([]byte, error)
}

var errKey = errors.New(`"privateKey" is not the text of a PEM file with an RSA, EC (P-256) or Ed25519 key without a passphrase`)

// parseKey reads a key. Variables of the environment often have "\n" for its lines.
func parseKey(text string) (*signingKey, error) {
	block, _ := pem.Decode([]byte(strings.ReplaceAll(text, `\n`, "\n")))
	if block == nil {
		return nil, errKey
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	if err != nil {
		key, err = x509.ParseECPrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, errKey
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return &signingKey{"RS256", func(text []byte) ([]byte, error) {
			sum := sha256.Sum256(text)
			return rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		}}, nil
	case *ecdsa.PrivateKey:
		if key.Curve != elliptic.P256() {
			return nil, errKey
		}
		return &signingKey{"ES256", func(text []byte) ([]byte, error) { return signES256(key, text) }}, nil
	case ed25519.PrivateKey:
		return &signingKey{"EdDSA", func(text []byte) ([]byte, error) { return ed25519.Sign(key, text), nil }}, nil
	}
	return nil, errKey
}

// signES256 writes the two numbers of the signature one after the other, as RFC 7518
// has it in section 3.4, where the library writes ASN.1.
func signES256(key *ecdsa.PrivateKey, text []byte) ([]byte, error) {
	sum := sha256.Sum256(text)
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return nil, err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signature, nil
}
