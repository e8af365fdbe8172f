package page

import (
	"crypto/rand"
	"crypto/subtle"
	"io"
	"net/http"
	"slices"
)

// cookieName is of the cookie that a browser has once it was opened with a link. Cookies are shared by
// all ports of an address, so the page has an address that little else listens at (docs/ui.md).
const cookieName = "toolcell"

// maxForm bounds what is posted, in bytes.
const maxForm = 64 << 10

// contentPolicy is the Content-Security-Policy: nothing but what the page itself has.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'"

// newSecret makes a token of 256 bits.
func newSecret() string { return rand.Text() + rand.Text() }

// guard lets requests through that come from a page of ours, or from who has a link.
func (s *Server) guard(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(refuse))
	next = origins.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": contentPolicy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy":            "same-origin", // with no-referrer, forms have the origin null
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			w.Header().Set(name, value)
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		switch opens := r.Method == http.MethodGet && r.URL.Path == "/open"; {
		case r.Host != s.host: // a name that leads here, such as by DNS rebinding
			http.Error(w, "this is not the address of the page", http.StatusMisdirectedRequest)
		case opens:
			s.open(w, r)
		case !fromHere(r, "http://"+s.host):
			refuse(w, r)
		case !s.known(r):
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, "Open the page with a link that toolcell ui has printed. Each can be opened once.\n")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "this request comes from another page", http.StatusForbidden)
}

// fromHere reports whether a request was made by a page of ours or by the user. A page at another port
// of the same address is not of the same origin, but its requests have our cookie.
func fromHere(r *http.Request, origin string) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	from := r.Header.Get("Origin")
	return (site == "" || site == "same-origin" || site == "none") && (from == "" || from == origin)
}

// known reports whether a browser was opened with a link.
func (s *Server) known(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(cookieName), func(c *http.Cookie) bool { // another port may have set one, too
		return subtle.ConstantTimeCompare([]byte(c.Value), []byte(s.cookie)) == 1
	})
}

// open takes a link. What follows is a request of our own page, so that the cookie, which is strict, goes
// with it wherever the link was.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	right := s.link != "" && subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(s.link)) == 1
	if right {
		s.link = ""
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if !right {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<!doctype html><title>toolcell</title><p>This link was opened already, or is none. The terminal of toolcell ui shows another.\n")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: s.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	_, _ = io.WriteString(w, `<!doctype html><title>toolcell</title><meta http-equiv="refresh" content="0; url=/"><p><a href="/">toolcell</a>`+"\n")
	if s.o.Opened != nil {
		s.o.Opened()
	}
}
