package rootfstest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// An Authority is a certificate authority of one test.
type Authority struct {
	File string // its certificate, in PEM
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority, whose certificate is also that of 127.0.0.1,
// localhost and registry.test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "toolcell test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"registry.test", "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authority{dir: t.TempDir(), cert: cert, key: key}
	a.File = a.write(t, "ca.pem", "CERTIFICATE", der)
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, "key.pem", "EC PRIVATE KEY", private)
	return a
}

func (a *Authority) write(t testing.TB, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(a.dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// transport trusts the authority.
func (a *Authority) transport() http.RoundTripper {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
}

// StartTLSRegistry starts Debian's docker-registry with a certificate of the
// authority. It accepts requests with a token, which a second server issues for the
// user's password, as Docker Hub does.
func (a *Authority) StartTLSRegistry(t testing.TB, user, pass string) (host string) {
	t.Helper()
	tokens := httptest.NewUnstartedServer(a.tokenServer(user, pass))
	tokens.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{a.cert.Raw}, PrivateKey: a.key}}}
	tokens.StartTLS()
	t.Cleanup(tokens.Close)
	// The library refuses token servers at internal addresses, unless by name.
	realm := strings.Replace(tokens.URL, "127.0.0.1", "localhost", 1) + "/token"
	config := fmt.Sprintf("http: {addr: %q, tls: {certificate: %q, key: %q}}\n", freePort, a.File, filepath.Join(a.dir, "key.pem")) +
		fmt.Sprintf("auth: {token: {realm: %q, service: registry, issuer: test, rootcertbundle: %q}}\n", realm, a.File)
	return runRegistry(t, config)
}

// tokenServer gives tokens (distribution's specification of token
// authentication).
func (a *Authority) tokenServer(user, pass string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var access []map[string]any
		if u, p, _ := r.BasicAuth(); u == user && p == pass {
			for _, scope := range r.URL.Query()["scope"] {
				if parts := strings.Split(scope, ":"); len(parts) == 3 {
					access = append(access, map[string]any{"type": parts[0], "name": parts[1], "actions": strings.Split(parts[2], ",")})
				}
			}
		} else if u != "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		token, err := a.sign(map[string]any{
			"iss": "test", "sub": user, "aud": "registry", "jti": fmt.Sprint(time.Now().UnixNano()), "access": access,
			"iat": time.Now().Unix(), "nbf": time.Now().Add(-time.Minute).Unix(), "exp": time.Now().Add(5 * time.Minute).Unix(),
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"token": token})
	})
}

// sign makes a JSON Web Token (RFC 7515, ES256).
func (a *Authority) sign(claims map[string]any) (string, error) {
	head := map[string]any{"alg": "ES256", "typ": "JWT", "x5c": []string{base64.StdEncoding.EncodeToString(a.cert.Raw)}}
	var parts []string
	for _, part := range []map[string]any{head, claims} {
		b, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(b))
	}
	text := strings.Join(parts, ".")
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, a.key, sum[:])
	if err != nil {
		return "", err
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// PushLayout is PushLayoutAs over TLS.
func (a *Authority) PushLayout(t testing.TB, layoutDir, ref, user, pass string) {
	t.Helper()
	push(t, layoutDir, ref,
		remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: user, Password: pass})), remote.WithTransport(a.transport()))
}

// Proxy starts an HTTP proxy that leads every connection to addr. It returns its
// URL, and a function that counts the connections so far.
func Proxy(t testing.TB, addr string) (url string, used func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	count := make(chan int, 1)
	count <- 0
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			count <- <-count + 1
			go tunnel(c, addr)
		}
	}()
	return "http://" + l.Addr().String(), func() int {
		n := <-count
		count <- n
		return n
	}
}

// tunnel answers one CONNECT.
func tunnel(c net.Conn, addr string) {
	defer c.Close()
	var head bytes.Buffer
	for b := make([]byte, 1); !bytes.HasSuffix(head.Bytes(), []byte("\r\n\r\n")); {
		if _, err := c.Read(b); err != nil {
			return
		}
		head.Write(b)
	}
	to, err := net.Dial("tcp", addr)
	if err != nil || !strings.HasPrefix(head.String(), "CONNECT ") {
		return
	}
	defer to.Close()
	if _, err := c.Write([]byte("HTTP/1.1 200 OK\r\n\r\n")); err != nil {
		return
	}
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{c, to}, {to, c}} {
		go func() {
			_, _ = way[0].(*net.TCPConn).ReadFrom(way[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}
