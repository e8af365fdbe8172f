package plainjson

import (
	"bytes"
	"fmt"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
)

func fromTOML(data []byte) ([]byte, error) {
	if bytes.Count(data, []byte("=")) > maxKeys {
		return nil, fmt.Errorf("has more than %d keys", maxKeys)
	}
	plain, err := toml.JSON(data)
	if err != nil {
		return nil, fmt.Errorf("is not TOML: %s", text.Printable(err.Error(), 300))
	}
	return plain, nil
}
