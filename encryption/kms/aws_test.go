package kms

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
)

// awsServer speaks Decrypt of AWS KMS and AssumeRole of STS. Signatures are checked by the services of the integration tests;
// here the key that signs decides.
type awsServer struct{ roles int }

func (a *awsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	signer := r.Header.Get("Authorization")
	if r.URL.Path == "/" && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		if r.PostFormValue("Action") != "AssumeRole" || r.PostFormValue("RoleArn") != "arn:aws:iam::1:role/reader" || r.PostFormValue("ExternalId") != "ext" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`<ErrorResponse><Error><Code>AccessDenied</Code><Message>not authorized</Message></Error></ErrorResponse>`))
			return
		}
		a.roles++
		_, _ = w.Write([]byte(`<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>ROLE</AccessKeyId>` +
			`<SecretAccessKey>rolesecret</SecretAccessKey><SessionToken>roletoken</SessionToken><Expiration>2126-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`))
		return
	}
	fail := func(status int, code string) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": code, "message": "told by the service"})
	}
	var body struct {
		KeyID               string `json:"KeyId"`
		EncryptionAlgorithm string
		CiphertextBlob      []byte
		EncryptionContext   map[string]string
	}
	err := json.NewDecoder(r.Body).Decode(&body)
	switch {
	case err != nil || r.Header.Get("X-Amz-Target") != "TrentService.Decrypt" || body.EncryptionContext != nil || body.EncryptionAlgorithm != "SYMMETRIC_DEFAULT":
		fail(400, "ValidationException")
	case strings.Contains(signer, "Credential=XML/"):
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"))
	case strings.Contains(signer, "Credential=ROLE/") && r.Header.Get("X-Amz-Security-Token") != "roletoken":
		fail(400, "UnrecognizedClientException")
	case !strings.Contains(signer, "Credential=GOOD/") && !strings.Contains(signer, "Credential=ROLE/"):
		fail(400, "AccessDeniedException")
	case body.KeyID == "off":
		fail(400, "DisabledException")
	case body.KeyID != "lake":
		fail(400, "NotFoundException")
	case string(body.CiphertextBlob) != "wrapped":
		fail(400, "InvalidCiphertextException")
	default:
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_ = json.NewEncoder(w).Encode(map[string]string{"KeyId": "lake", "Plaintext": base64.StdEncoding.EncodeToString(dataKey)})
	}
}

func TestAWS(t *testing.T) {
	ctx := context.Background()
	server := &awsServer{}
	url := serveClear(t, server)
	open := func(own Properties) func(key, wrapped string) error {
		p := Properties{"client.region": "us-east-1", "kms.endpoint": url, "sts.endpoint": url, "kms.secret-access-key": "a secret key"}
		for k, v := range own {
			p[k] = v
		}
		c, err := Open(ctx, "AWS", p)
		require.NoError(t, err)
		return func(key, wrapped string) error {
			got, err := c.Unwrap(ctx, key, []byte(wrapped))
			if err == nil {
				require.Equal(t, dataKey, got)
			}
			return err
		}
	}
	good := open(Properties{"kms.access-key-id": "GOOD"})
	require.NoError(t, good("lake", "wrapped"))
	refused(t, good("lake", "changed"), fault.Corrupt)
	refused(t, good("other", "wrapped"), fault.NotFound)
	refused(t, good("off", "wrapped"), fault.Denied)
	for _, id := range []string{"WEAK", "XML"} {
		refused(t, open(Properties{"kms.access-key-id": id})("lake", "wrapped"), fault.Denied, "a secret key")
	}
	role := Properties{"kms.access-key-id": "WEAK", "client.assume-role.arn": "arn:aws:iam::1:role/reader", "client.assume-role.external-id": "ext", "client.assume-role.timeout-sec": "900"}
	as := open(role)
	require.NoError(t, as("lake", "wrapped"))
	require.NoError(t, as("lake", "wrapped"))
	require.Equal(t, 1, server.roles)
	role["client.assume-role.external-id"] = "none"
	refused(t, open(role)("lake", "wrapped"), fault.Denied, "a secret key")
	role["client.assume-role.timeout-sec"] = "soon"
	_, err := Open(ctx, "aws", role)
	require.Error(t, err)
}
