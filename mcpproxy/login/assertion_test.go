package login

import (
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
	"math/big"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestMachineSignsInPlaceOfASecret: the assertion is for this authorization server
// alone, and for a minute.
func TestMachineSignsInPlaceOfASecret(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for algorithm, key := range map[string]any{"ES256": ec, "RS256": rs, "EdDSA": ed} {
		t.Run(algorithm, func(t *testing.T) {
			der, err := x509.MarshalPKCS8PrivateKey(key)
			if err != nil {
				t.Fatal(err)
			}
			text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
			a := machineAuthority(t)
			a.oauth = &config.OAuth{ClientID: "bot", PrivateKey: strings.ReplaceAll(text, "\n", `\n`), KeyID: "key-1", Machine: true}
			acquired(t, a.open(t.TempDir()), "")
			form := a.requests()[0]
			if form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" || form.Get("client_secret") != "" {
				t.Errorf("posted %v", form)
			}
			verifyAssertion(t, form.Get("client_assertion"), algorithm, key, a.URL)
		})
	}
}

func verifyAssertion(t *testing.T, assertion, algorithm string, key any, issuer string) {
	t.Helper()
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no JWT", assertion)
	}
	var header struct{ Alg, Kid string }
	var claims struct {
		Iss, Sub, Aud, Jti string
		Iat, Exp           int64
	}
	decodePart(t, parts[0], &header)
	decodePart(t, parts[1], &claims)
	if header.Alg != algorithm || header.Kid != "key-1" {
		t.Errorf("header %+v", header)
	}
	if claims.Iss != "bot" || claims.Sub != "bot" || claims.Aud != issuer || claims.Jti == "" || claims.Exp-claims.Iat != 60 {
		t.Errorf("claims %+v", claims)
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	signed := []byte(parts[0] + "." + parts[1])
	sum := sha256.Sum256(signed)
	good := false
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		good = len(signature) == 64 && ecdsa.Verify(&key.PublicKey, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
	case *rsa.PrivateKey:
		good = rsa.VerifyPKCS1v15(&key.PublicKey, 5, sum[:], signature) == nil // crypto.SHA256
	case ed25519.PrivateKey:
		good = ed25519.Verify(key.Public().(ed25519.PublicKey), signed, signature)
	}
	if !good {
		t.Error("the signature is wrong")
	}
}

func decodePart(t *testing.T, part string, into any) {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnusableKeyIsNamedAndNotShown(t *testing.T) {
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(small)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"SECRET", "-----BEGIN PRIVATE KEY-----\nU0VDUkVU\n-----END PRIVATE KEY-----\n",
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})),
	} {
		a := machineAuthority(t)
		a.oauth = &config.OAuth{ClientID: "bot", PrivateKey: key, Machine: true}
		_, err := refuse(t, a.open(t.TempDir()), "", 401, "Bearer")
		mcptest.WantError(t, err, `"privateKey" is not`)
		if strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%v", err)
		}
	}
}
