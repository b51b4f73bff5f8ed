package kms

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
)

// awsKMS calls Decrypt of AWS KMS, without an encryption context, as Iceberg's AwsKeyManagementClient does.
type awsKMS struct {
	client *kms.Client
	spec   types.EncryptionAlgorithmSpec
}

var awsProvider = Provider{openAWS, append([]string{
	"client.region",
	"kms.endpoint",
	"kms.encryption-algorithm-spec",
	"kms.data-key-spec",
	"kms.access-key-id",
	"kms.secret-access-key",
	"kms.session-token",
	"ambient-fallback",
}, credentials.RoleProperties...)}

func openAWS(_ context.Context, p Properties) (encryption.KMS, error) {
	region, err := p.one("aws", "client.region")
	if err != nil {
		return nil, err
	}
	if p["client.assume-role.web-identity-token-file"] != "" && p["client.assume-role.arn"] == "" {
		return nil, fault.New(fault.Invalid, "key management service aws needs client.assume-role.arn beside client.assume-role.web-identity-token-file")
	}
	own := maps.Clone(p)
	for from, to := range map[string]string{"kms.access-key-id": "s3.access-key-id", "kms.secret-access-key": "s3.secret-access-key", "kms.session-token": "s3.session-token"} {
		own[to] = p[from]
	}
	keys, ok, err := credentials.Configured(own, credentials.NewAmbient())
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "key management service aws")
	}
	if !ok {
		return nil, fault.New(fault.Invalid, "key management service aws needs kms.access-key-id and kms.secret-access-key, client.assume-role.web-identity-token-file, or ambient-fallback: true for the keys of the process")
	}
	o := kms.Options{Region: region, Credentials: credentials.SDK(keys)}
	if e := p["kms.endpoint"]; e != "" {
		o.BaseEndpoint = &e
	}
	a := &awsKMS{client: kms.New(o), spec: types.EncryptionAlgorithmSpecSymmetricDefault}
	if s := p["kms.encryption-algorithm-spec"]; s != "" {
		a.spec = types.EncryptionAlgorithmSpec(s)
	}
	return a, nil
}

// Unwrap implements encryption.KMS.
func (a *awsKMS) Unwrap(ctx context.Context, keyID string, wrapped []byte) (encryption.Key, error) {
	out, err := a.client.Decrypt(ctx, &kms.DecryptInput{KeyId: &keyID, CiphertextBlob: wrapped, EncryptionAlgorithm: a.spec})
	if err != nil {
		return nil, awsFailure(keyID, err)
	}
	return out.Plaintext, nil
}

// awsFailure sorts the errors of KMS and STS by their codes; a service that answers in another form than the SDK reads is
// judged by its status.
func awsFailure(keyID string, err error) error {
	status := 0
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		status = answer.HTTPStatusCode()
	}
	var keys *fault.Error // there was none to sign with
	if errors.As(err, &keys) {
		return fault.Wrap(keys.Kind, keys, "AWS KMS for master key %q", keyID)
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		text := "no answer"
		if status != 0 {
			text = fmt.Sprintf("status %d", status)
		} else if cause := errors.Unwrap(err); cause != nil {
			text = cause.Error()
		}
		return failure("AWS KMS", keyID, status, text)
	}
	switch api.ErrorCode() {
	case "AccessDeniedException", "AccessDenied", "UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId", "ExpiredTokenException",
		"InvalidSignatureException", "SignatureDoesNotMatch", "MissingAuthenticationTokenException", "DisabledException", "KMSInvalidStateException":
		status = http.StatusForbidden
	case "NotFoundException":
		status = http.StatusNotFound
	case "InvalidCiphertextException", "IncorrectKeyException", "InvalidKeyUsageException", "ValidationException":
		status = http.StatusBadRequest
	default:
		if status != http.StatusForbidden && status != http.StatusUnauthorized {
			status = 0
		}
	}
	text := api.ErrorCode()
	if m := api.ErrorMessage(); m != "" {
		text += ": " + m
	}
	return failure("AWS KMS", keyID, status, text)
}
