package assemble

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/config"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	a := &authority{t, cert, key, filepath.Join(t.TempDir(), "ca.pem")}
	require.NoError(t, os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return a
}

// issue writes a certificate and its key to name.pem and name.key.
func (a *authority) issue(name string, serial int64, uses x509.ExtKeyUsage) (certFile, keyFile string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name, Organization: []string{"Example"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{uses}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	require.NoError(a.t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	certFile, keyFile = filepath.Join(filepath.Dir(a.file), name+".pem"), filepath.Join(filepath.Dir(a.file), name+".key")
	require.NoError(a.t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	require.NoError(a.t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return certFile, keyFile
}

// whoIs connects, with a client certificate when there is one, and asks who it is there and which certificate the server shows.
func whoIs(t *testing.T, address string, roots *authority, certFile, keyFile string) (serial int64, err error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), VerifyConnection: func(s tls.ConnectionState) error {
		serial = s.PeerCertificates[0].SerialNumber.Int64()
		return nil
	}}
	conf.RootCAs.AddCert(roots.cert)
	if certFile != "" {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		require.NoError(t, err)
		conf.Certificates = []tls.Certificate{pair}
	}
	cl, err := flightsql.NewClientCtx(context.Background(), address, nil, nil, grpc.WithTransportCredentials(credentials.NewTLS(conf)))
	require.NoError(t, err)
	defer func() { _ = cl.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	info, err := cl.Execute(ctx, "SELECT current_user")
	if err != nil {
		return serial, err
	}
	r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	if err != nil {
		return serial, err
	}
	defer r.Release()
	require.True(t, r.Next())
	require.Equal(t, "job-etl", r.RecordBatch().Column(0).ValueStr(0))
	return serial, nil
}

func TestCertificates(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	certFile, keyFile := ours.issue("server", 2, x509.ExtKeyUsageServerAuth)
	etl, etlKey := ours.issue("etl", 3, x509.ExtKeyUsageClientAuth)
	guest, guestKey := ours.issue("guest", 4, x509.ExtKeyUsageClientAuth)
	forged, forgedKey := theirs.issue("etl", 5, x509.ExtKeyUsageClientAuth)

	loaded, err := config.Load("", nil)
	require.NoError(t, err)
	c := &loaded.Config
	c.Catalogs = map[string]config.Catalog{"lake": {Type: "hadoop", Properties: map[string]string{"warehouse": t.TempDir()}}}
	c.TLS.CertFile, c.TLS.KeyFile, c.TLS.ClientCAs = certFile, keyFile, ours.file
	c.Auth.Subjects = []config.Subject{{Subject: "CN=etl,*", Principal: "job-$CN"}}
	require.NoError(t, loaded.Check())
	stack, err := Build(context.Background(), c, zap.NewNop())
	require.NoError(t, err)
	l, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- stack.Server.Serve(l) }()
	defer func() {
		stack.Close()
		require.NoError(t, <-done)
	}()
	address := l.Addr().String()

	serial, err := whoIs(t, address, ours, etl, etlKey)
	require.NoError(t, err)
	require.EqualValues(t, 2, serial)
	for name, pair := range map[string][2]string{"no certificate": {}, "a subject without a rule": {guest, guestKey}} {
		_, err = whoIs(t, address, ours, pair[0], pair[1])
		require.Equal(t, codes.Unauthenticated, status.Code(err), "%s: %v", name, err)
	}
	_, err = whoIs(t, address, ours, forged, forgedKey)
	require.Equal(t, codes.Unavailable, status.Code(err), "the handshake fails: %v", err)

	ours.issue("server", 7, x509.ExtKeyUsageServerAuth) // in its place
	require.NoError(t, os.Chtimes(certFile, time.Now(), time.Now().Add(time.Minute)))
	require.Eventually(t, func() bool {
		serial, err = whoIs(t, address, ours, etl, etlKey)
		return err == nil && serial == 7
	}, 30*time.Second, 100*time.Millisecond, "the server goes on with the new certificate")
	require.NoError(t, os.WriteFile(certFile, []byte("not a certificate"), 0o600))
	time.Sleep(2 * time.Second) // the file is looked at once a second
	serial, err = whoIs(t, address, ours, etl, etlKey)
	require.NoError(t, err)
	require.EqualValues(t, 7, serial, "a broken file leaves the last")
}

func TestSelfSigned(t *testing.T) {
	conf, err := transport(config.TLS{SelfSigned: true, MinVersion: "1.3"}, zap.NewNop())
	require.NoError(t, err)
	require.EqualValues(t, tls.VersionTLS13, conf.MinVersion)
	leaf, err := x509.ParseCertificate(conf.Certificates[0].Certificate[0])
	require.NoError(t, err)
	require.NoError(t, leaf.VerifyHostname("localhost"))
	require.NoError(t, leaf.VerifyHostname("127.0.0.1"))
	_, err = transport(config.TLS{CertFile: "/nowhere", KeyFile: "/nowhere"}, zap.NewNop())
	require.Error(t, err)
}
