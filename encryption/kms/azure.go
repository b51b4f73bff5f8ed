package kms

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"

	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
)

// azureKMS calls unwrapKey of one Azure Key Vault. Master keys are named by their URL, as Iceberg's AzureKeyManagementClient
// does, which must be of that vault: a token is never carried to a host that a table names.
type azureKMS struct {
	client    *azkeys.Client
	vault     *url.URL
	algorithm azkeys.EncryptionAlgorithm
}

var azureProvider = Provider{openAzure, []string{
	"azure.keyvault.url",
	"azure.keyvault.key-wrap-algorithm",
	"azure.tenant-id",
	"azure.client-id",
	"azure.client-secret",
	"azure.authority-host",
	"azure.keyvault.token",
	"azure.keyvault.ca-file",
	"azure.keyvault.verify-challenge",
	"ambient-fallback",
}}

func openAzure(_ context.Context, p Properties) (encryption.KMS, error) {
	text, err := p.one("azure", "azure.keyvault.url")
	if err != nil {
		return nil, err
	}
	vault, err := url.Parse(text)
	if err != nil || vault.Scheme != "https" || vault.Host == "" {
		return nil, fault.New(fault.Invalid, "key management service azure: azure.keyvault.url %q is no https address", text)
	}
	transport, err := trusting(p["azure.keyvault.ca-file"])
	if err != nil {
		return nil, err
	}
	options := azcore.ClientOptions{Transport: transport}
	if host := p["azure.authority-host"]; host != "" {
		options.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: host, Services: map[cloud.ServiceName]cloud.ServiceConfiguration{}}
	}
	var who azcore.TokenCredential
	switch {
	case p["azure.keyvault.token"] != "":
		who = fixedToken(p["azure.keyvault.token"])
	case p["azure.client-secret"] != "":
		who, err = azidentity.NewClientSecretCredential(p["azure.tenant-id"], p["azure.client-id"], p["azure.client-secret"],
			&azidentity.ClientSecretCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: p["azure.authority-host"] != ""})
	case p.ambient():
		who, err = azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: options})
	default:
		err = errors.New("it needs azure.tenant-id, azure.client-id and azure.client-secret, azure.keyvault.token, or ambient-fallback: true for the identity of the process")
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "key management service azure: %v", err)
	}
	client, err := azkeys.NewClient(text, who, &azkeys.ClientOptions{
		ClientOptions:                        options,
		DisableChallengeResourceVerification: strings.EqualFold(p["azure.keyvault.verify-challenge"], "false"),
	})
	if err != nil {
		return nil, fault.New(fault.Invalid, "key management service azure: %v", err)
	}
	a := &azureKMS{client: client, vault: vault, algorithm: azkeys.EncryptionAlgorithmRSAOAEP256}
	if alg := p["azure.keyvault.key-wrap-algorithm"]; alg != "" {
		a.algorithm = azkeys.EncryptionAlgorithm(alg)
	}
	return a, nil
}

// fixedToken is a bearer token that somebody else renews.
type fixedToken string

// GetToken implements azcore.TokenCredential.
func (t fixedToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(t), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// trusting makes an HTTP client that trusts the authorities of a PEM file, or the system's when path is empty, and follows no
// redirect.
func trusting(path string) (*http.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "ca-file")
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fault.New(fault.Invalid, "ca-file %s holds no certificate", path)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// Unwrap implements encryption.KMS.
func (a *azureKMS) Unwrap(ctx context.Context, keyID string, wrapped []byte) (encryption.Key, error) {
	u, err := url.Parse(keyID)
	if err != nil {
		return nil, fault.New(fault.Corrupt, "master key %q is no address of a key", keyID)
	}
	if u.Scheme != a.vault.Scheme || !strings.EqualFold(u.Host, a.vault.Host) {
		return nil, fault.New(fault.Denied, "master key %q is not of the vault %s that the configuration names", keyID, a.vault)
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "keys" {
		return nil, fault.New(fault.Corrupt, "master key %q is not of the form https://VAULT/keys/NAME/VERSION", keyID)
	}
	version := ""
	if len(parts) == 3 {
		version = parts[2]
	}
	out, err := a.client.UnwrapKey(ctx, parts[1], version, azkeys.KeyOperationParameters{Algorithm: &a.algorithm, Value: wrapped}, nil)
	if err != nil {
		return nil, azureFailure(keyID, err)
	}
	return out.Result, nil
}

func azureFailure(keyID string, err error) error {
	const kind = "Azure Key Vault"
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return failure(kind, keyID, answer.StatusCode, answer.ErrorCode)
	}
	var login *azidentity.AuthenticationFailedError
	if errors.As(err, &login) {
		return failure(kind, keyID, http.StatusForbidden, "the login failed")
	}
	return failure(kind, keyID, 0, err.Error())
}
