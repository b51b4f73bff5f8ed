package assemble

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/skua-db/skua/config"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/reload"
)

// transport makes the TLS of the Flight port; nil for plaintext.
func transport(c config.TLS, log *zap.Logger) (*tls.Config, error) {
	if c.CertFile == "" && !c.SelfSigned {
		return nil, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	if c.MinVersion == "1.3" {
		t.MinVersion = tls.VersionTLS13
	}
	if c.SelfSigned {
		cert, err := selfSigned()
		if err != nil {
			return nil, err
		}
		log.Warn("the certificate is made for this start and nobody vouches for it: clients must skip its verification", zap.Binary("sha256", sum(cert.Certificate[0])))
		t.Certificates = []tls.Certificate{cert}
	} else {
		pair, err := reload.Open(log, func() (tls.Certificate, error) { return tls.LoadX509KeyPair(c.CertFile, c.KeyFile) }, c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "tls")
		}
		t.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			cert, _ := pair.Get()
			return &cert, nil
		}
	}
	if c.ClientCAs != "" {
		pool, err := authorities(c.ClientCAs, x509.NewCertPool())
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "tls.client_ca_file")
		}
		t.ClientCAs, t.ClientAuth = pool, tls.VerifyClientCertIfGiven
		if c.ClientAuth == "required" {
			t.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	return t, nil
}

func sum(b []byte) []byte {
	s := sha256.Sum256(b)
	return s[:]
}

// authorities adds the certificates of a PEM file to pool.
func authorities(path string, pool *x509.CertPool) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fault.New(fault.Invalid, "%s holds no certificate", path)
	}
	return pool, nil
}

// trusting makes an HTTP client that trusts the authorities of a file beside the system's; nil without a file.
func trusting(path string) (*http.Client, error) {
	if path == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if pool, err = authorities(path, pool); err != nil {
		return nil, err
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: t, Timeout: 10 * time.Second}, nil
}

// selfSignedLife is how long a certificate that is made at the start holds.
const selfSignedLife = 90 * 24 * time.Hour

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	name, _ := os.Hostname()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "skua"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(selfSignedLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost", name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
