package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A site is what code may be allowed to reach: a server with TLS and one without, both on
// 127.0.0.2, which no_proxy does not except as it does 127.0.0.1. Under their names they
// are reached through a proxy, so that no test depends on how this machine looks up names.
type site struct {
	t           *testing.T
	tls, plain  *httptest.Server
	proxy       *httptest.Server
	roots       string // file with the authority that toolcell must trust
	repository  string
	arrived     chan string   // what came to /wait
	release     chan struct{} // lets it answer
	unread      chan struct{} // closed at the end; until then /unread reads nothing
	narrow      atomic.Bool   // new connections have small buffers on this side
	mu          sync.Mutex
	credentials map[string]string // by host, the last header Authorization that came
}

// siteAddress is an address of every Linux host that is not its usual one.
const siteAddress = "127.0.0.2"

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, arrived: make(chan string, 1), release: make(chan struct{}), unread: make(chan struct{}), credentials: map[string]string{}}
	handler := http.NewServeMux()
	handler.HandleFunc("/", s.echo)
	handler.HandleFunc("/bytes", func(w http.ResponseWriter, r *http.Request) {
		var n int64
		_, _ = fmt.Sscan(r.URL.Query().Get("n"), &n)
		w.Header().Set("Content-Length", fmt.Sprint(n))
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.CopyN(w, zeros{}, n)
	})
	handler.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusFound)
	})
	handler.HandleFunc("/wait", func(w http.ResponseWriter, r *http.Request) {
		s.arrived <- r.URL.RawQuery
		select {
		case <-s.release:
		case <-r.Context().Done():
		}
		fmt.Fprint(w, "released")
	})
	handler.HandleFunc("/unread", func(http.ResponseWriter, *http.Request) { <-s.unread })
	s.makeRepository()
	handler.Handle("/repository.git/", http.StripPrefix("/repository.git/", http.FileServer(http.Dir(s.repository))))
	cert := s.makeCertificate()
	s.tls, s.plain, s.proxy = s.listen(handler), s.listen(handler), s.listen(http.HandlerFunc(s.serveProxy))
	s.tls.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.tls.StartTLS()
	s.plain.Start()
	s.proxy.Start()
	t.Cleanup(func() { close(s.unread) })
	return s
}

func (s *site) listen(h http.Handler) *httptest.Server {
	l, err := net.Listen("tcp", siteAddress+":0")
	if err != nil {
		s.t.Fatal(err)
	}
	server := &httptest.Server{Listener: &siteListener{l, &s.narrow}, Config: &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}}
	s.t.Cleanup(server.Close)
	return server
}

type siteListener struct {
	net.Listener
	narrow *atomic.Bool
}

func (l *siteListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil && l.narrow.Load() {
		err = errors.Join(c.(*net.TCPConn).SetReadBuffer(32<<10), c.(*net.TCPConn).SetWriteBuffer(32<<10))
	}
	return c, err
}

// echo answers with what came.
func (s *site) echo(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.credentials[r.Host] = r.Header.Get("Authorization")
	s.mu.Unlock()
	fmt.Fprintf(w, "%s %s of %s\n", r.Method, r.RequestURI, r.Host)
	_ = r.Header.Write(w)
	_, _ = io.Copy(w, r.Body)
}

// credential returns the last header Authorization that came for a host.
func (s *site) credential(host string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.credentials[host]
}

// serveProxy leads to our servers, under whatever name, as a careful proxy does: it takes
// requests for port 80 in absolute form, and connects to other ports only.
func (s *site) serveProxy(w http.ResponseWriter, r *http.Request) {
	host, port, _ := net.SplitHostPort(r.RequestURI)
	to := net.JoinHostPort(siteAddress, port)
	switch {
	case r.URL.Scheme == "http" && strings.HasSuffix(r.URL.Host, ".test"):
		(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL.Host = s.plain.Listener.Addr().String() }}).ServeHTTP(w, r)
		return
	case !strings.HasSuffix(host, ".test"):
		http.Error(w, "only names of the test", http.StatusBadGateway)
		return
	case port == "443":
		to = s.tls.Listener.Addr().String()
	case port == "80":
		http.Error(w, "no CONNECT to port 80", http.StatusForbidden)
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close()
	client, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	fmt.Fprint(client, "HTTP/1.1 200 OK\r\n\r\n")
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(server, rest); _ = server.(*net.TCPConn).CloseWrite() })
	both.Go(func() { _, _ = io.Copy(client, server); _ = client.(*net.TCPConn).CloseWrite() })
	both.Wait()
}

// makeCertificate makes an authority, in a file, and a certificate for our servers.
func (s *site) makeCertificate() tls.Certificate {
	s.t.Helper()
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			s.t.Fatal(err)
		}
		return key
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: []byte{1},
	}
	ca.Subject.CommonName = "test"
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		DNSNames: []string{"api.test", "rules.test", "token.test", "other.test"}, IPAddresses: []net.IP{net.ParseIP(siteAddress)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caKey, leafKey := newKey(), newKey()
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		s.t.Fatal(err)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, &leafKey.PublicKey, caKey)
	if err != nil {
		s.t.Fatal(err)
	}
	s.roots = filepath.Join(sharedFolder(s.t), "roots.pem")
	if err := os.WriteFile(s.roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}
}

// makeRepository makes one that can be cloned from a server of files (gitprotocol-http(5),
// "dumb").
func (s *site) makeRepository() {
	s.t.Helper()
	dir := s.t.TempDir()
	s.repository = filepath.Join(dir, "repository.git")
	script := `set -e
git init -q work && cd work
echo cloned >file && git add file
git -c user.name=t -c user.email=t@example.com commit -qm first
git clone -q --bare . ../repository.git && cd ../repository.git && git update-server-info`
	c := exec.Command("sh", "-c", script)
	c.Dir, c.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := c.CombinedOutput(); err != nil {
		s.t.Fatalf("making a repository: %v\n%s", err, out)
	}
}

// env has a policy with these lines in [network], beside others.
func (s *site) env(lines string, others env) env {
	s.t.Helper()
	dir, write := policyFolder(s.t)
	write("[network]\n" + lines)
	e := env{"TOOLCELL_IMAGE": "host", "XDG_CONFIG_HOME": dir, "SSL_CERT_FILE": s.roots, "HTTPS_PROXY": s.proxy.URL, "HTTP_PROXY": s.proxy.URL}
	maps.Copy(e, others)
	return e
}

// hostPort is where the server with TLS listens.
func (s *site) hostPort() string { return s.tls.Listener.Addr().String() }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// uses are what a result says of the network.
func (r reply) uses() (all []map[string]any) {
	list, _ := r.fields["network"].([]any)
	for _, use := range list {
		all = append(all, use.(map[string]any))
	}
	return all
}
