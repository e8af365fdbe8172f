package artifacts

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/text"
)

// maxNameBytes is below the limit of file systems (255): a file may be copied under a longer name.
const maxNameBytes = 200

// plainName turns a sandbox's name for a file into a safe one: not a path, and
// without characters that could mislead a terminal or a reader.
func plainName(name string) string {
	if limit := 4 * maxNameBytes; len(name) > limit { // code can give a picture a name of megabytes
		name = name[:limit/2] + name[len(name)-limit/2:]
	}
	name = strings.Map(func(c rune) rune {
		if c == '/' || c == '\\' || c == utf8.RuneError || !unicode.IsPrint(c) {
			return '_'
		}
		return c
	}, name)
	// Hidden, a folder, or an option of the command that a user types before it.
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") {
		name = "_" + name[1:]
	}
	if name == "" {
		return "_"
	}
	return cutToFit(name, "")
}

// cutToFit puts a number before the extension of a name, and cuts what is before it if need be.
func cutToFit(name, number string) string {
	ext := filepath.Ext(name)
	if len(ext) > 20 {
		ext = ""
	}
	return text.Clip(strings.TrimSuffix(name, ext), maxNameBytes-len(number)-len(ext)) + number + ext
}

// freeName takes a name that is not taken: name itself, or name with a number. Taken has
// the next number to try for each name, so that thousands of twins are not all tried for
// the next one.
func freeName(name string, taken map[string]int) string {
	name = plainName(name)
	n, isTaken := taken[name]
	if !isTaken {
		taken[name] = 2
		return name
	}
	for ; ; n++ {
		free := cutToFit(name, "-"+strconv.Itoa(n))
		if _, isTaken := taken[free]; !isTaken {
			taken[name], taken[free] = n+1, 2
			return free
		}
	}
}

// typesByExtension are common media types that cannot be told from a file's
// first bytes.
var typesByExtension = map[string]string{
	".csv": "text/csv", ".tsv": "text/tab-separated-values", ".md": "text/markdown", ".py": "text/x-python",
	".json": "application/json", ".jsonl": "application/jsonl", ".ndjson": "application/jsonl", ".ipynb": "application/json",
	".geojson": "application/geo+json", ".xml": "application/xml", ".svg": "image/svg+xml",
	".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml", ".html": "text/html",
	".css": "text/css", ".js": "text/javascript", ".txt": "text/plain", ".log": "text/plain",
	".parquet": "application/vnd.apache.parquet", ".npy": "application/octet-stream", ".npz": "application/zip",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".db":   "application/vnd.sqlite3", ".sqlite": "application/vnd.sqlite3",
}

// typeOf returns the media type of a kept file.
func typeOf(path string) string {
	if t := typesByExtension[strings.ToLower(filepath.Ext(path))]; t != "" {
		return t
	}
	f, err := os.Open(path)
	if err != nil {
		return "application/octet-stream"
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head)
	t, _, _ := strings.Cut(http.DetectContentType(head[:n]), ";")
	return t
}

// asText reports whether clients get a file's content as text.
func asText(mime string, body []byte) bool {
	textual := strings.HasPrefix(mime, "text/") || strings.HasSuffix(mime, "json") || strings.HasSuffix(mime, "jsonl") ||
		strings.HasSuffix(mime, "xml") || strings.HasSuffix(mime, "yaml") || strings.HasSuffix(mime, "toml")
	return textual && utf8.Valid(body) && !bytes.ContainsRune(body, 0)
}
