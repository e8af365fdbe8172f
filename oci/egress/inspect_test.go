package egress

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// inspecting returns the options of a broker that lets these requests through to
// example.com.
func inspecting(requests ...string) Options {
	return Options{Rules: testRules{inspected: map[string][]string{"example.com": requests}}, Inspect: []string{"example.com"}}
}

// ask sends a request as it is written, over TLS with the broker, and returns all that
// comes back.
func (f *fixture) ask(request string) string {
	f.t.Helper()
	c := f.dialInspected("example.com")
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		f.t.Fatal(err)
	}
	all, _ := io.ReadAll(c)
	return string(all)
}

func (f *fixture) dialInspected(serverName string) *tls.Conn {
	f.t.Helper()
	conn, err := f.handshake(serverName, "h2", "http/1.1")
	if err != nil {
		f.t.Fatal(err)
	}
	return conn
}

func (f *fixture) handshake(serverName string, protocols ...string) (*tls.Conn, error) {
	f.t.Helper()
	raw, err := net.Dial("tcp", f.proxy)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = raw.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(raw, "CONNECT %s HTTP/1.1\r\n\r\n", strings.TrimPrefix(f.url("example.com", ""), "https://"))
	wantConnected(f.t, raw)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.broker.Certificate())
	conn := tls.Client(raw, &tls.Config{ServerName: serverName, RootCAs: roots, NextProtos: protocols})
	return conn, conn.Handshake()
}

func (f *fixture) hostPort() string { return strings.TrimPrefix(f.url("example.com", ""), "https://") }

func TestInspectionChecksEachRequest(t *testing.T) {
	f := newFixture(t, inspecting("GET /v1/*", "GET /", "OPTIONS /v1/*"), hello)
	host := "Host: " + f.hostPort() + "\r\nConnection: close\r\n"
	for request, want := range map[string]string{
		"GET /v1/x HTTP/1.1\r\n" + host:                                                                     "200 OK",
		"GET /v1/a%20b HTTP/1.1\r\n" + host:                                                                 "200 OK",
		"GET / HTTP/1.1\r\n" + host:                                                                         "200 OK",
		"GET https://" + f.hostPort() + "/v1/x HTTP/1.1\r\n" + host:                                         "200 OK",
		"GET https://" + f.hostPort() + " HTTP/1.1\r\n" + host:                                              "200 OK",
		"GET https:v1/x HTTP/1.1\r\n" + host:                                                                "400 toolcell: the path of a request must begin with a slash",
		"GET * HTTP/1.1\r\n" + host:                                                                         "400 toolcell: the path of a request must begin with a slash",
		"OPTIONS https:v1/x HTTP/1.1\r\n" + host:                                                            "400 toolcell: the path of a request must begin with a slash",
		"GET x:https://" + f.hostPort() + "/v1/x HTTP/1.1\r\n" + host:                                       "403 toolcell: the request is for an x:// address",
		"POST /v1/x HTTP/1.1\r\nContent-Length: 0\r\n" + host:                                               `403 toolcell: add "POST /v1/x"`,
		"GET /v2/x HTTP/1.1\r\n" + host:                                                                     `403 toolcell: add "GET /v2/x"`,
		"get /v1/x HTTP/1.1\r\n" + host:                                                                     "403",
		"GET /v1/../v2 HTTP/1.1\r\n" + host:                                                                 "403 toolcell: a path with . or ..",
		"GET /v1/%2e%2e HTTP/1.1\r\n" + host:                                                                "403 toolcell: a path with . or ..",
		"GET /v1/%252e%252e HTTP/1.1\r\n" + host:                                                            "403 toolcell: a path with . or ..",
		"GET /v1/. HTTP/1.1\r\n" + host:                                                                     "403 toolcell: a path with . or ..",
		"GET /v1/..;a HTTP/1.1\r\n" + host:                                                                  "403 toolcell: a path with . or ..",
		"GET /v1//x HTTP/1.1\r\n" + host:                                                                    "403 toolcell: a path with . or ..",
		"GET /v1%2fx HTTP/1.1\r\n" + host:                                                                   "403 toolcell: a path with an encoded slash",
		"GET /v1/a%252fb HTTP/1.1\r\n" + host:                                                               "403 toolcell: a path with an encoded slash",
		"GET /v1/a%5cb HTTP/1.1\r\n" + host:                                                                 "403 toolcell: a path with an encoded slash",
		"GET /v1/a%00b HTTP/1.1\r\n" + host:                                                                 "403 toolcell: a path with control characters",
		"GET /v1/x HTTP/1.1\r\nX-HTTP-Method-Override: DELETE\r\n" + host:                                   "403 toolcell: the header X-Http-Method-Override",
		"GET /v1/x HTTP/1.1\r\nx-method-override: DELETE\r\n" + host:                                        "403 toolcell: the header X-Method-Override",
		"GET /v1/x HTTP/1.1\r\nX_HTTP_Method_Override: DELETE\r\n" + host:                                   "403 toolcell: the header X_http_method_override",
		"GET /v1/x HTTP/1.1\r\nX-Original-URL: /v2/x\r\n" + host:                                            "403 toolcell: the header X-Original-Url",
		"GET /v1/..%20/admin HTTP/1.1\r\n" + host:                                                           "403 toolcell: a path with . or ..",
		"GET /v1/%20.%20. HTTP/1.1\r\n" + host:                                                              "403 toolcell: a path with . or ..",
		"GET /v1/.../admin HTTP/1.1\r\n" + host:                                                             "403 toolcell: a path with . or ..",
		"GET /v1/..%e2%80%8b/admin HTTP/1.1\r\n" + host:                                                     "403 toolcell: a path with . or ..",          // a zero-width space
		"GET /v1/%ef%bc%8e%ef%bc%8e/admin HTTP/1.1\r\n" + host:                                              "403 toolcell: a path with . or ..",          // wide dots
		"GET /v1/%e2%80%a5/admin HTTP/1.1\r\n" + host:                                                       "403 toolcell: a path with . or ..",          // two dots in one
		"GET /v1%ef%bc%8f.. HTTP/1.1\r\n" + host:                                                            "403 toolcell: a path with an encoded slash", // a wide one
		"GET /v1/a%e2%88%95b HTTP/1.1\r\n" + host:                                                           "403 toolcell: a path with an encoded slash", // the division sign
		"GET /v1/a%ef%bc%bcb HTTP/1.1\r\n" + host:                                                           "403 toolcell: a path with an encoded slash", // a wide backslash
		"GET /v1/a%c2%85b HTTP/1.1\r\n" + host:                                                              "403 toolcell: a path with control characters",
		"GET /v1/Acme_Inc. HTTP/1.1\r\n" + host:                                                             "200 OK",
		"GET /v1/%e6%9f%a5%e8%af%a2 HTTP/1.1\r\n" + host:                                                    "200 OK",
		"GET /v1/x HTTP/1.1\r\nDestination: /v2/x\r\n" + host:                                               "403 toolcell: the header Destination",
		"GET /v1/x HTTP/1.1\r\nx-amz-copy-source: /v2/x\r\n" + host:                                         "403 toolcell: the header X-Amz-Copy-Source",
		"TRACE /v1/x HTTP/1.1\r\n" + host:                                                                   "403 toolcell: TRACE does not pass",
		"track /v1/x HTTP/1.1\r\n" + host:                                                                   "403 toolcell: TRACK does not pass",
		"GET /v1/x HTTP/1.1\r\n" + strings.Repeat("A:\r\n", 600) + host:                                     "431",
		"GET /v1/x HTTP/1.1\r\nA: " + strings.Repeat("a", 50<<10) + host:                                    "431",
		"GET /v1/%2561 HTTP/1.1\r\n" + host:                                                                 "403 toolcell: a path that is encoded twice",
		"GET /v1/%c0%ae%c0%ae HTTP/1.1\r\n" + host:                                                          "403 toolcell: a path with control characters, or not in UTF-8",
		"GET //v1/x HTTP/1.1\r\n" + host:                                                                    "403 toolcell: a path with . or ..",
		"GET /v1/100%25 HTTP/1.1\r\n" + host:                                                                "200 OK",
		"GET /v1/x HTTP/1.1\r\nHost: other.com\r\nConnection: close\r\n":                                    "403 toolcell: the request is for other.com:443, and the connection for example.com",
		"GET /v1/x HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n":                                  "403 toolcell: the request is for example.com:443",
		"GET https://other.com/v1/x HTTP/1.1\r\n" + host:                                                    "403 toolcell: the request is for other.com",
		"GET http://" + f.hostPort() + "/v1/x HTTP/1.1\r\n" + host:                                          "403 toolcell: the request is for an http:// address",
		"GET /v1/x HTTP/1.1\r\nHost: " + f.hostPort() + "\r\n" + host:                                       "400",
		"GET /v1/x HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\nHost: " + f.hostPort() + "\r\n": "403 toolcell: WebSockets",
		"CONNECT other.com:443 HTTP/1.1\r\n" + host:                                                         "403",
		"POST /v1/x HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n" + host + "\r\n0\r\n\r\nGET /v2/x HTTP/1.1\r\n" + host: "403",
	} {
		if got := f.ask(request + "\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("%q:\n%q, want %q", request, got, want)
		}
	}
	uses := f.broker.Uses()
	if len(uses) != 1 || uses[0].Requests != 8 || uses[0].Refused == 0 {
		t.Errorf("uses are %+v", uses)
	}
}

// TestNoOtherAddressIsSentOn: a server takes an address in place of a path for what the
// request is for, whatever Host says (RFC 9112, 3.2.2), so it must not pass on a host whose
// rules name no path, either.
func TestNoOtherAddressIsSentOn(t *testing.T) {
	options := inspecting()
	options.Rules = anyRequest{options.Rules.(testRules)}
	options.Credentials = []Credential{{Host: "example.com", Header: "Authorization", Value: "Bearer s3cret", Secrets: []string{"s3cret"}}}
	f := newFixture(t, options, hello)
	host := " HTTP/1.1\r\nHost: " + f.hostPort() + "\r\nConnection: close\r\n\r\n"
	for _, target := range []string{"x:https://other.com/admin", "https:https://other.com/admin", "https:admin", "x:admin", "*"} {
		if got := f.ask("GET " + target + host); !strings.HasPrefix(got, "HTTP/1.1 40") {
			t.Errorf("%s: %q", target, got)
		}
	}
	for target, want := range map[string]string{"https://" + f.hostPort(): "/", "https://" + f.hostPort() + "?q=1": "/?q=1", "/x": "/x"} {
		if got := f.ask("GET " + target + host); !strings.Contains(got, "GET "+want+" of ") {
			t.Errorf("%s: %q, want %s", target, got, want)
		}
	}
}

// anyRequest allows every request to an inspected host.
type anyRequest struct{ testRules }

func (anyRequest) AllowRequest(_, _, host string, _ uint16, _ string) (string, error) {
	return host, nil
}

func (anyRequest) Inspected(string, string, uint16) bool { return true }

func (anyRequest) AllowHost(_, host string, _ uint16) (string, error) { return host, nil }

// A second request on a connection is checked as the first is.
func TestInspectionChecksRequestsOfOneConnection(t *testing.T) {
	f := newFixture(t, inspecting("GET /v1/*"), hello)
	host := "Host: " + f.hostPort() + "\r\n"
	got := f.ask("GET /v1/x HTTP/1.1\r\n" + host + "\r\nGET /v2/x HTTP/1.1\r\n" + host + "\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 200 OK") || !strings.Contains(got, "HTTP/1.1 403 toolcell") {
		t.Errorf("%q", got)
	}
}

func TestInspectionIsForItsHostsOnly(t *testing.T) {
	f := newFixture(t, inspecting("GET /*"), hello)
	if _, err := f.handshake("other.com"); err == nil {
		t.Error("a handshake for another host succeeded")
	}
	if got := f.dialInspected("example.com").ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("the protocol is %q", got)
	}
	// A certificate of this authority for another host is of no use.
	if leaf, err := f.broker.authority.certificate([]string{"other.com"}); err == nil {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(f.broker.Certificate())
		cert, err := x509.ParseCertificate(leaf.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "other.com"}); err == nil {
			t.Error("the authority's certificate is good for other hosts")
		}
	}
	block, _ := pem.Decode(f.broker.Certificate())
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if life := time.Until(ca.NotAfter); life > certificateLife || !ca.PermittedDNSDomainsCritical || len(ca.ExcludedIPRanges) != 2 {
		t.Errorf("the authority's certificate lives %v, and is %+v", life, ca)
	}
}

func TestInspectionRefusesBadUpstreamCertificates(t *testing.T) {
	for want, change := range map[string]func(*x509.Certificate){
		"200 OK": func(*x509.Certificate) {},
		"502 toolcell: the certificate of example.com is not valid: x509: certificate has expired":                     func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) },
		"502 toolcell: the certificate of example.com is not valid: x509: certificate is valid for other.com":          func(c *x509.Certificate) { c.DNSNames = []string{"other.com"} },
		"502 toolcell: the certificate of example.com is not valid: x509: certificate has expired or is not yet valid": func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) },
	} {
		t.Run(want, func(t *testing.T) {
			template := &x509.Certificate{
				SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"example.com"},
				IsCA: true, BasicConstraintsValid: true,
			}
			change(template)
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
			if err != nil {
				t.Fatal(err)
			}
			cert, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			o := inspecting("GET /*")
			o.Roots = x509.NewCertPool()
			o.Roots.AddCert(cert)
			f := newFixture(t, o, hello, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key})
			got := f.ask("GET /x HTTP/1.1\r\nHost: " + f.hostPort() + "\r\nConnection: close\r\n\r\n")
			if !strings.HasPrefix(got, "HTTP/1.1 "+want) {
				t.Errorf("%q", got)
			}
		})
	}
}

const secret, placeholder = "s3cret-token-of-40-characters-0123456789", "tc_placeholder"

func withCredential() Options {
	o := inspecting("GET /*", "POST /*", "TRACE /*")
	o.Credentials = []Credential{{Host: "example.com", Header: "authorization", Value: "Bearer " + secret, Secrets: []string{secret}, Placeholder: placeholder}}
	return o
}

func TestCredentialsAreAddedOutside(t *testing.T) {
	var got []string
	f := newFixture(t, withCredential(), func(w http.ResponseWriter, r *http.Request) {
		got = append(got, strings.Join(r.Header.Values("Authorization"), ","))
	})
	host := "Host: " + f.hostPort() + "\r\nConnection: close\r\n"
	for request, want := range map[string]string{
		"GET /x HTTP/1.1\r\n" + host: "200",
		"GET /x HTTP/1.1\r\nAuthorization: Bearer " + placeholder + "\r\n" + host:                  "200",
		"GET /x HTTP/1.1\r\nAuthorization: a\r\nAUTHORIZATION: b\r\n" + host:                       "403 toolcell: the header authorization is there more than once",
		"TRACE /x HTTP/1.1\r\n" + host:                                                             "403 toolcell: TRACE",
		"GET /x HTTP/1.1\r\nHost: other.com\r\nConnection: close\r\n":                              "403",
		"GET /x HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nHost: " + f.hostPort() + "\r\n": "403",
		"DELETE /x HTTP/1.1\r\n" + host:                                                            "403",
	} {
		if answer := f.ask(request + "\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 "+want) {
			t.Errorf("%q: %q, want %q", request, answer, want)
		}
	}
	if want := []string{"Bearer " + secret, "Bearer " + secret}; !slices.Equal(got, want) {
		t.Errorf("the server got %q", got)
	}
}

func TestSecretsAreTakenOutOfAnswers(t *testing.T) {
	long := strings.Repeat("x", 32<<10-20) + secret + strings.Repeat("y", 100) + secret[:39] + "z"
	f := newFixture(t, withCredential(), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("Accept-Encoding is %q", r.Header.Get("Accept-Encoding"))
		}
		for _, part := range []string{long[:32<<10], long[32<<10:]} {
			_, _ = io.WriteString(w, part)
			w.(http.Flusher).Flush()
		}
	})
	for _, kind := range []string{"text/html; charset=utf-8", "application/problem+json", "", "text/event-stream"} {
		got := f.ask("GET /x?type=" + strings.NewReplacer(";", "%3b", " ", "%20").Replace(kind) + " HTTP/1.1\r\nHost: " + f.hostPort() + "\r\nConnection: close\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.Header.Get("X-Echo") != "Bearer "+placeholder || string(body) != strings.ReplaceAll(long, secret, placeholder) {
			t.Errorf("%q: header %q, %d bytes, error %v", kind, resp.Header.Get("X-Echo"), len(body), err)
		}
	}
}

// An event is passed on when it comes, though a secret might follow.
func TestEventsAreNotHeldBack(t *testing.T) {
	more := make(chan struct{})
	f := newFixture(t, withCredential(), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-more
	})
	defer close(more)
	c := f.dialInspected("example.com")
	defer c.Close()
	fmt.Fprintf(c, "GET /x HTTP/1.1\r\nHost: %s\r\n\r\n", f.hostPort())
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { c.Close(); resp.Body.Close() }() // an open body would be read to its end
	var event [9]byte
	if _, err := io.ReadFull(resp.Body, event[:]); err != nil || string(event[:]) != "data: 1\n\n" {
		t.Errorf("%q, error %v", event, err)
	}
}

// A redirect is the client's to follow, so the header goes nowhere else.
func TestRedirectsAreNotFollowed(t *testing.T) {
	f := newFixture(t, withCredential(), func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://evil.test/"+r.Header.Get("Authorization"), http.StatusFound)
	})
	got := f.ask("GET /x HTTP/1.1\r\nHost: " + f.hostPort() + "\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 302") || strings.Contains(got, secret) {
		t.Errorf("%q", got)
	}
}

func TestLargeBodiesTakeNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it sends hundreds of megabytes")
	}
	const size = 256 << 20
	f := newFixture(t, withCredential(), func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Length", fmt.Sprint(n))
		_, _ = io.CopyN(w, zeros{}, n)
	})
	f.broker.transport.TLSClientConfig.InsecureSkipVerify = true
	req := httptest.NewRequest("POST", f.url("example.com", "/x"), io.LimitReader(zeros{}, size))
	req.ContentLength = size
	resp, err := f.client().Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n != size {
		t.Errorf("%d bytes came back, error %v", n, err)
	}
	f.broker.Close()
	if uses := f.broker.Uses(); uses[0].BytesSent < size || uses[0].BytesReceived < size {
		t.Errorf("uses are %+v", uses)
	}
}

// What comes with an answer is searched like the answer: 1xx statuses, which do not pass,
// and trailers.
func TestSecretsAreTakenOutOfWhatSurroundsAnAnswer(t *testing.T) {
	f := newFixture(t, withCredential(), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Sum", r.Header.Get("Authorization"))
		w.Header().Set(http.TrailerPrefix+"X-Late", r.Header.Get("Authorization"))
	})
	got := f.ask("GET /x HTTP/1.1\r\nHost: " + f.hostPort() + "\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 200 OK") || strings.Contains(got, secret) || strings.Count(got, placeholder) < 2 {
		t.Errorf("%q", got)
	}
}

// A secret must not come out in parts.
func TestPartsOfTextsDoNotPassBesideACredential(t *testing.T) {
	f := newFixture(t, withCredential(), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(r.Header.Get("Authorization")))
	})
	for kind, want := range map[string]string{"text/plain": "403 toolcell: a part of a text", "image/png": "206"} {
		got := f.ask("GET /x?type=" + kind + " HTTP/1.1\r\nRange: bytes=0-9\r\nHost: " + f.hostPort() + "\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

// What is kept back of a text does not depend on the secret: otherwise a server that
// sends back what it gets would let code guess it letter by letter.
func TestDelaysTellNothingOfASecret(t *testing.T) {
	for _, sent := range []string{"data: q", "data: " + secret[:1], "data: " + secret[:len(secret)-1], "no end " + strings.Repeat("z", len(secret)-1)} {
		r, w := io.Pipe()
		b := &hidingBody{ReadCloser: r, replacer: strings.NewReplacer(secret, placeholder), kept: len(secret) - 1}
		go func() { _, _ = io.WriteString(w, "line\n"+sent); w.Close() }()
		first := make([]byte, 1<<10)
		n, err := b.Read(first)
		if want := "line\n" + sent[:max(0, len(sent)-len(secret)+1)]; err != nil || string(first[:n]) != want {
			t.Errorf("%q: %q came, error %v", sent, first[:n], err)
		}
		if rest, err := io.ReadAll(b); err != nil || string(first[:n])+string(rest) != "line\n"+sent {
			t.Errorf("%q: %q followed, error %v", sent, rest, err)
		}
	}
}

// Errors of net/http quote what they do not understand.
func TestSecretsAreNotInErrors(t *testing.T) {
	for name, answer := range map[string]string{
		"no status line":  "%s\r\n\r\n",
		"no header":       "HTTP/1.1 200 OK\r\n%s\r\n\r\n",
		"no status":       "HTTP/1.1 %s\r\n\r\n",
		"no length":       "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n",
		"no coding":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n",
		"a reason phrase": "HTTP/1.1 404 %s\r\nConnection: close\r\n\r\n",
	} {
		f := newFixture(t, withCredential(), func(w http.ResponseWriter, r *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprintf(c, answer, r.Header.Get("Authorization"))
		})
		got := f.ask("GET /x HTTP/1.1\r\nHost: " + f.hostPort() + "\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 ") || strings.Contains(got, secret) || strings.Contains(fmt.Sprint(f.broker.Refusals(), f.broker.Uses()), secret) {
			t.Errorf("%s: %q, %q", name, got, f.broker.Refusals())
		}
	}
}
