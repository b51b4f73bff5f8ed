// Package identity makes what a server needs to be reached with TLS and a login: an authority, a certificate of it for 127.0.0.1, a file
// of users, and a configuration.
//
// It is for tests only: the password is no secret.
package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// The one user there is.
const (
	User     = "ada"
	Password = "a password of the tests"
)

// Files of the folder that Make fills.
const (
	Authority   = "ca.pem"
	Certificate = "server.pem"
	Key         = "server.key"
	Users       = "users"
	// Config is a server's configuration that uses the others. Its nodes share the keys of tickets.
	Config = "skua.yaml"
)

const life = 48 * time.Hour

// Make writes the files into dir.
func Make(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	begin := time.Now().Add(-time.Hour)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Skua's tests"}, NotBefore: begin, NotAfter: begin.Add(life),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotBefore: begin, NotAfter: begin.Add(life),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	if err != nil {
		return err
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, authority, &serverKey.PublicKey, authorityKey)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		return err
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(Password), bcrypt.DefaultCost)
	if err != nil {
		return err
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	for name, content := range map[string][]byte{
		Authority: block("CERTIFICATE", authorityDER), Certificate: block("CERTIFICATE", serverDER), Key: block("PRIVATE KEY", keyDER),
		Config: fmt.Appendf(nil, `tls: {cert_file: %q, key_file: %q}
auth:
  users_file: %q
  ticket_keys: [{id: tests, secret: a secret that the nodes share}]
`, filepath.Join(dir, Certificate), filepath.Join(dir, Key), filepath.Join(dir, Users)),
		Users: append([]byte(User+":"), append(hash, '\n')...),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
