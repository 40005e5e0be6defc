package result

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
)

// ReadReport decodes a document of a command that makes several runs. One that is packed (gzip),
// as documents are kept, is unpacked. It reads to the end; what is no JSON, or packed wrongly, is an
// error.
func ReadReport(r io.Reader) (*Report, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) { // RFC 1952 §2.3.1
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		if data, err = io.ReadAll(z); err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
	}
	rep := &Report{}
	if err := json.Unmarshal(data, rep); err != nil {
		return nil, err
	}
	return rep, nil
}
