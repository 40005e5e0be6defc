package iperf3

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" // OAEP with SHA-1 is what iperf3 speaks; collisions do not matter there
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// iperf3's login (spec §12): name, password and time, encrypted with the server's RSA
// key. There is no nonce, so a token can be replayed while its time is accepted.

// maxUserLine is the longest line of a users file that iperf3 reads.
const maxUserLine = 1023

// NewToken makes the value of "authtoken".
func NewToken(a plan.Auth, now time.Time) (string, error) {
	if strings.ContainsAny(a.Username, " \t\r\n") || strings.ContainsAny(a.Password, " \t\r\n") {
		return "", errors.New("login: user name and password cannot contain blanks: iperf3 splits the token at them")
	}
	key, err := parsePublicKey(a.PublicKey)
	if err != nil {
		return "", fmt.Errorf("login: %w", err)
	}
	plain := fmt.Appendf(nil, "user: %s\npwd:  %s\nts:   %d", a.Username, a.Password, now.Unix())
	var sealed []byte
	if a.PKCS1 {
		//lint:ignore SA1019 it is the padding of iperf3 up to 3.16, used only when asked for
		sealed, err = rsa.EncryptPKCS1v15(rand.Reader, key, plain)
	} else {
		sealed, err = rsa.EncryptOAEP(sha1.New(), rand.Reader, key, plain, nil)
	}
	if err != nil {
		return "", fmt.Errorf("login: encrypt: %w", err)
	}
	return base64.StdEncoding.EncodeToString(sealed), nil
}

func parsePublicKey(data []byte) (*rsa.PublicKey, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("the public key is not a PEM file")
	}
	if k, err := x509.ParsePKCS1PublicKey(block.Bytes); err == nil {
		return k, nil
	}
	k, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the public key cannot be read: %w", err)
	}
	key, ok := k.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("the public key is not an RSA key")
	}
	return key, nil
}

func parsePrivateKey(data []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("the private key is not a PEM file")
	}
	if strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "" {
		return nil, errors.New("the private key is encrypted: store it without a passphrase (openssl rsa -in KEY -out KEY)")
	}
	if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return k, nil
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the private key cannot be read: %w", err)
	}
	key, ok := k.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("the private key is not an RSA key")
	}
	return key, nil
}

// token is what a login says.
type token struct {
	user, password string
	at             time.Time
}

// errToken is all that is told about a token that cannot be opened: more would help
// who guesses (CVE-2024-26306).
var errToken = errors.New("the login token cannot be decrypted with this server's key (another key, or the other padding: iperf3 up to 3.16 uses PKCS#1 v1.5)")

// openToken decrypts a token; the old padding is tried only when it is allowed.
func openToken(key *rsa.PrivateKey, tok string, pkcs1 bool) (token, error) {
	if tok == "" {
		return token{}, errors.New("the login token is empty: a fault of iperf3 3.17 to 3.19.1 built against OpenSSL 3, use another release")
	}
	sealed, err := base64.StdEncoding.DecodeString(tok)
	if err != nil || len(sealed) > key.Size() {
		return token{}, errToken
	}
	plain, err := rsa.DecryptOAEP(sha1.New(), nil, key, sealed, nil)
	if err != nil && pkcs1 {
		//lint:ignore SA1019 it is the padding of iperf3 up to 3.16, used only when asked for
		plain, err = rsa.DecryptPKCS1v15(nil, key, sealed)
	}
	if err != nil {
		return token{}, errToken
	}
	return parseToken(plain)
}

// parseToken reads the plain text: words after "user:", "pwd:" and "ts:".
func parseToken(plain []byte) (token, error) {
	f := strings.Fields(string(plain))
	if len(f) != 6 || f[0] != "user:" || f[2] != "pwd:" || f[4] != "ts:" {
		return token{}, errors.New("the login token does not hold a user, a password and a time")
	}
	ts, err := strconv.ParseInt(f[5], 10, 64)
	if err != nil {
		return token{}, errors.New("the login token's time is not a number")
	}
	return token{user: f[1], password: f[3], at: time.Unix(ts, 0)}, nil
}

// checkLogin returns the user's name. users is the file's content, read anew for every
// test; skew is the largest difference between the clocks. The error never holds the
// password.
func checkLogin(key *rsa.PrivateKey, tok string, pkcs1 bool, users io.Reader, now time.Time, skew time.Duration) (string, error) {
	t, err := openToken(key, tok, pkcs1)
	if err != nil {
		return "", err
	}
	known, err := checkUser(users, t.user, t.password)
	if err != nil {
		return t.user, err
	}
	if !known {
		return t.user, fmt.Errorf("user %q: name or password is wrong", t.user)
	}
	// iperf3 compares whole seconds.
	if d := time.Duration(now.Unix()-t.at.Unix()) * time.Second; d > skew || d < -skew {
		return t.user, fmt.Errorf("user %q: time difference %v, allowed is %v: set the clocks or raise the threshold", t.user, d, skew)
	}
	return t.user, nil
}

// checkUser looks for the user's line: name, comma, hexadecimal SHA-256 of
// "{name}password". Every line is compared, so that the time does not tell which
// names exist.
func checkUser(users io.Reader, name, password string) (bool, error) {
	want := sha256.Sum256(fmt.Appendf(nil, "{%s}%s", name, password))
	found := 0
	in := bufio.NewReaderSize(users, maxUserLine+1)
	for {
		line, long, err := in.ReadLine()
		if err == io.EOF {
			return found == 1, nil
		}
		if err != nil {
			return false, fmt.Errorf("read users file: %w", err)
		}
		for long { // a longer line is no user
			if _, long, err = in.ReadLine(); err != nil {
				break
			}
			line = nil
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		user, rest, ok := strings.Cut(string(line), ",")
		hash, _, _ := strings.Cut(rest, ",")
		sum, err := hex.DecodeString(strings.TrimSpace(hash))
		if !ok || err != nil || len(sum) != len(want) {
			continue
		}
		found |= subtle.ConstantTimeCompare([]byte(user), []byte(name)) & subtle.ConstantTimeCompare(sum, want[:])
	}
}
