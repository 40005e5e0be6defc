package result

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Document is the report as --json prints it: the bytes that SHA256 is of.
func (r *Report) Document() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// SHA256 is the hash of the document in hexadecimal; "" for one that cannot be encoded.
func (r *Report) SHA256() string {
	data, err := r.Document()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
