package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/server"
)

func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "skua"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}, pool
}

func dial(t *testing.T, address string, how credentials.TransportCredentials) *flightsql.Client {
	t.Helper()
	cl, err := flightsql.NewClientCtx(context.Background(), address, nil, nil, grpc.WithTransportCredentials(how))
	require.NoError(t, err)
	t.Cleanup(func() { _ = cl.Close() })
	return cl
}

// TestWrongProtocolIsTold speaks TLS to a plaintext port, plaintext to a TLS port, and HTTP/1 to both.
func TestWrongProtocolIsTold(t *testing.T) {
	config, roots := certificate(t)
	dir, open := lake(t), server.AuthOptions{Anonymous: true}
	plain := startOn(t, dir, open, nil)
	secure := startWith(t, dir, open, nil, func(o *server.Options) { o.TLS = config })
	ctx := context.Background()
	over := credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})

	n, err := count(ctx, dial(t, secure.address, over), "SELECT * FROM tpch.nation")
	require.NoError(t, err)
	require.EqualValues(t, 25, n)

	_, err = count(ctx, dial(t, secure.address, insecure.NewCredentials()), "SELECT 1")
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, "this port speaks TLS: use grpc+tls://")
	_, err = count(ctx, dial(t, plain.address, over), "SELECT 1")
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, "protocol version")

	browser := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, st := range []*stack{plain, secure} {
		res, err := browser.Get("http://" + st.address + "/")
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusBadRequest, res.StatusCode)
		require.Contains(t, string(body), "This is a Flight SQL port")
	}
	// One that sends half a word and waits, and one that sends none, hold nothing up.
	for _, word := range []string{"", "P", "PR", "G"} {
		c, err := net.Dial("tcp", plain.address)
		require.NoError(t, err)
		_, err = io.WriteString(c, word)
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
	}
	n, err = count(ctx, connect(t, plain), "SELECT * FROM tpch.nation")
	require.NoError(t, err)
	require.EqualValues(t, 25, n)
}
