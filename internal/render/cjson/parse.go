package cjson

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

// Parse reads one JSON value from data. What follows it is an error.
func Parse(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	v, err := next(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	return v, nil
}

// Next reads the next value from dec. Of members with the same name the last one
// stays, at its own place: most readers see that one.
func Next(dec *json.Decoder) (any, error) { return next(dec, 0) }

func next(dec *json.Decoder, depth int) (any, error) {
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
		a := Array{}
		for dec.More() {
			v, err := next(dec, depth+1)
			if err != nil {
				return nil, err
			}
			a = append(a, v)
		}
		_, err := dec.Token()
		return a, unexpectedEOF(err)
	}
	o := &Object{}
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return nil, unexpectedEOF(err)
		}
		key, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("member name %v", k)
		}
		v, err := next(dec, depth+1)
		if err != nil {
			return nil, err
		}
		o.Add(key, v)
	}
	if _, err := dec.Token(); err != nil {
		return nil, unexpectedEOF(err)
	}
	o.dedupe()
	return o, nil
}

// dedupe drops all but the last of members that share a name.
func (o *Object) dedupe() {
	seen := make(map[string]bool, len(o.Members))
	kept := len(o.Members)
	for i := len(o.Members) - 1; i >= 0; i-- {
		if m := o.Members[i]; !seen[m.Key] {
			seen[m.Key] = true
			kept--
			o.Members[kept] = m
		}
	}
	o.Members = o.Members[kept:]
}

func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
