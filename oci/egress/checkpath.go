package egress

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// checkPath refuses paths that name another resource after a server has resolved them (RFC
// 3986, 6.2.2.3), merged slashes, decoded them again, or replaced characters with similar
// ones.
func checkPath(u *url.URL) error {
	decoded := u.Path
	if !utf8.ValidString(decoded) || strings.ContainsFunc(decoded, unicode.IsControl) {
		return errors.New("a path with control characters, or not in UTF-8, does not pass where rules name paths")
	}
	again, err := url.PathUnescape(decoded)
	twice := err == nil && again != decoded
	if twice {
		decoded = again
	}
	plain := plainPunctuation(decoded)
	raw := strings.ToLower(u.EscapedPath())
	if strings.Contains(raw, "%2f") || strings.Contains(plain, `\`) || strings.Count(plain, "/") != strings.Count(raw, "/") {
		return errors.New("a path with an encoded slash, a backslash or a character like one does not pass where rules name paths")
	}
	segments := strings.Split(plain, "/")
	for i, segment := range segments {
		name, _, _ := strings.Cut(segment, ";")
		if onlyDots(name) || name == "" && i > 0 && i < len(segments)-1 {
			return errors.New("a path with . or .. or an empty segment does not pass where rules name paths")
		}
	}
	if twice {
		return errors.New("a path that is encoded twice does not pass where rules name paths")
	}
	return nil
}

// plainPunctuation replaces wide and compatible forms of dots, slashes and spaces, as do
// servers that normalize a path or convert it to another character set.
func plainPunctuation(path string) string {
	return slashes.Replace(norm.NFKC.String(path))
}

// slashes replaces the characters that Windows' best-fit mapping converts to a slash or
// backslash and NFKC keeps.
var slashes = strings.NewReplacer("\u2044", "/", "\u2215", "/", "\u29f8", "/", "\u2216", `\`, "\u29f5", `\`, "\u29f9", `\`)

// onlyDots reports whether a segment consists of dots, possibly with spaces or invisible
// characters, which Windows and some frameworks drop.
func onlyDots(segment string) bool {
	dots := 0
	for _, c := range segment {
		switch {
		case c == '.':
			dots++
		case !unicode.IsSpace(c) && !unicode.Is(unicode.Cf, c):
			return false
		}
	}
	return dots > 0
}

// overriding are headers that make frameworks and gateways use another method or path than
// the request's.
var overriding = []string{
	"x-http-method-override", "x-http-method", "x-method-override", "x-original-method",
	"x-original-url", "x-original-uri", "x-rewrite-url", "x-original-path", "x-override-url",
	"x-envoy-original-path", "x-forwarded-uri", "x-forwarded-path", "x-forwarded-prefix", "x-forwarded-method",
	"destination", // of COPY and MOVE (RFC 4918, 10.3)
	"x-copy-from", "x-copied-from", "x-symlink-target",
}

// secondResource are suffixes of headers that name what object stores copy or move, such as
// x-amz-copy-source and x-ms-rename-source.
var secondResource = []string{"-copy-source", "-rename-source", "-move-source"}

func checkOverride(h http.Header) error {
	for name := range h {
		plain := gatewayName(name)
		if slices.Contains(overriding, plain) || slices.ContainsFunc(secondResource, func(end string) bool { return strings.HasSuffix(plain, end) }) {
			return fmt.Errorf("the header %s does not pass where rules name methods or paths", name)
		}
	}
	return nil
}
