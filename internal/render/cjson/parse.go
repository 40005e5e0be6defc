package iperf3json

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxDepth is how deep a document may nest; iperf3's own nest seven levels
// (cJSON's limit is 1000).
const maxDepth = 1000

var errDepth = errors.New("nested too deeply")

// parse reads one JSON value from data, keeping the order of members. What follows it
// is an error.
func parse(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	v, err := parseValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	return v, nil
}

// parseValue reads the next value. Of members with the same name the last one stays,
// at its own place: most readers see that one.
func parseValue(dec *json.Decoder, depth int) (any, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, unexpectedEOF(err)
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return t, nil // nil, bool, float64 or string
	}
	if depth >= maxDepth {
		return nil, errDepth
	}
	if delim == '[' {
		a := array{}
		for dec.More() {
			v, err := parseValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			a = append(a, v)
		}
		_, err := dec.Token()
		return a, unexpectedEOF(err)
	}
	o := &object{}
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return nil, unexpectedEOF(err)
		}
		key, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("member name %v", k)
		}
		v, err := parseValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		o.add(key, v)
	}
	if _, err := dec.Token(); err != nil {
		return nil, unexpectedEOF(err)
	}
	o.dedupe()
	return o, nil
}

// dedupe drops all but the last of members that share a name.
func (o *object) dedupe() {
	seen := make(map[string]bool, len(o.members))
	kept := len(o.members)
	for i := len(o.members) - 1; i >= 0; i-- {
		if m := o.members[i]; !seen[m.key] {
			seen[m.key] = true
			kept--
			o.members[kept] = m
		}
	}
	o.members = o.members[kept:]
}

func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
