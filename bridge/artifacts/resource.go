package artifacts

import (
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/internal/text"
)

// maxRead bounds a file that goes to a client in one message, in bytes: it is
// a third longer there, and clients take 16 MiB.
const maxRead = 11 << 20

// Read returns a kept file as a resource: as text if its content is text. The error
// is for the client.
func (s *Store) Read(uri string) (*mcp.ResourceContents, error) {
	f, err := s.open(uri)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, maxRead+1))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", uri, err)
	}
	if len(body) > maxRead {
		return nil, fmt.Errorf("%q has more than the %s that a client takes; on the user's computer it is %s", uri, text.Size(maxRead), f.Name())
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: typeOf(f.Name())}
	if asText(c.MIMEType, body) {
		c.Text = string(body)
	} else {
		c.Blob = body
	}
	return c, nil
}
