package iperf3

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// readKey reads a PEM file and returns its bytes if parse takes them: a key that
// cannot be used is a parameter error, not one of the test.
func (p *parser) readKey(name string, parse func(der []byte) (any, error)) ([]byte, error) {
	data, err := p.world.ReadFile(name)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s: not a PEM file", name)
	}
	key, err := parse(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	switch key.(type) {
	case *rsa.PublicKey, *rsa.PrivateKey:
		return data, nil
	}
	return nil, fmt.Errorf("%s: not an RSA key", name)
}

func parsePublicKey(der []byte) (any, error) {
	if key, err := x509.ParsePKIXPublicKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PublicKey(der); err == nil {
		return key, nil
	}
	return nil, errors.New("not a public key")
}

func parsePrivateKey(der []byte) (any, error) {
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	return nil, errors.New("not a private key, or one with a pass phrase")
}
