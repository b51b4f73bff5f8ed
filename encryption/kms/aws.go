package kms

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
)

// awsKMS calls Decrypt of AWS KMS, without an encryption context, as Iceberg's AwsKeyManagementClient does.
type awsKMS struct {
	client *openOnce[*kms.Client]
	spec   types.EncryptionAlgorithmSpec
}

var awsProvider = Provider{openAWS, []string{
	"client.region",
	"kms.endpoint",
	"kms.encryption-algorithm-spec",
	"kms.data-key-spec",
	"kms.access-key-id",
	"kms.secret-access-key",
	"kms.session-token",
	"client.assume-role.arn",
	"client.assume-role.external-id",
	"client.assume-role.region",
	"client.assume-role.session-name",
	"client.assume-role.timeout-sec",
	"client.assume-role.web-identity-token-file",
	"sts.endpoint",
	"ambient-fallback",
}}

func openAWS(_ context.Context, p Properties) (encryption.KMS, error) {
	if _, err := p.one("aws", "client.region"); err != nil {
		return nil, err
	}
	given := p["kms.access-key-id"] != "" && p["kms.secret-access-key"] != ""
	byWeb := p["client.assume-role.web-identity-token-file"] != ""
	switch {
	case byWeb && p["client.assume-role.arn"] == "":
		return nil, fault.New(fault.Invalid, "key management service aws needs client.assume-role.arn beside client.assume-role.web-identity-token-file")
	case !given && !byWeb && !p.ambient():
		return nil, fault.New(fault.Invalid, "key management service aws needs kms.access-key-id and kms.secret-access-key, client.assume-role.web-identity-token-file, or ambient-fallback: true for the keys of the process")
	}
	life := 0
	if text := p["client.assume-role.timeout-sec"]; text != "" {
		var err error
		if life, err = strconv.Atoi(text); err != nil || life <= 0 {
			return nil, fault.New(fault.Invalid, "key management service aws: client.assume-role.timeout-sec %q is no number of seconds", text)
		}
	}
	a := &awsKMS{spec: types.EncryptionAlgorithmSpecSymmetricDefault}
	if s := p["kms.encryption-algorithm-spec"]; s != "" {
		a.spec = types.EncryptionAlgorithmSpec(s)
	}
	a.client = &openOnce[*kms.Client]{open: func(ctx context.Context) (*kms.Client, error) {
		keys, err := awsKeys(ctx, p, given, time.Duration(life)*time.Second)
		if err != nil {
			return nil, err
		}
		return kms.New(kms.Options{Region: p["client.region"], BaseEndpoint: endpoint(p["kms.endpoint"]), Credentials: keys}), nil
	}}
	return a, nil
}

func endpoint(url string) *string {
	if url == "" {
		return nil
	}
	return &url
}

// awsKeys gives the keys that calls are signed with: the given ones or the process's, and of a role those that STS makes of them.
func awsKeys(ctx context.Context, p Properties, given bool, life time.Duration) (aws.CredentialsProvider, error) {
	var base aws.CredentialsProvider
	switch {
	case given:
		base = credentials.NewStaticCredentialsProvider(p["kms.access-key-id"], p["kms.secret-access-key"], p["kms.session-token"])
	case p.ambient():
		c, err := config.LoadDefaultConfig(ctx, config.WithRegion(p["client.region"]))
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "keys of the process")
		}
		base = c.Credentials
	}
	role := p["client.assume-role.arn"]
	if role == "" {
		return aws.NewCredentialsCache(base), nil
	}
	region := p["client.assume-role.region"]
	if region == "" {
		region = p["client.region"]
	}
	session := p["client.assume-role.session-name"]
	if session == "" {
		session = "skua-" + strconv.Itoa(os.Getpid())
	}
	client := sts.New(sts.Options{Region: region, BaseEndpoint: endpoint(p["sts.endpoint"]), Credentials: base})
	if file := p["client.assume-role.web-identity-token-file"]; file != "" {
		return aws.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(client, role, stscreds.IdentityTokenFile(file), func(o *stscreds.WebIdentityRoleOptions) {
			o.RoleSessionName = session
			o.Duration = life
		})), nil
	}
	return aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(client, role, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = session
		o.Duration = life
		if id := p["client.assume-role.external-id"]; id != "" {
			o.ExternalID = &id
		}
	})), nil
}

// Unwrap implements encryption.KMS.
func (a *awsKMS) Unwrap(ctx context.Context, keyID string, wrapped []byte) (encryption.Key, error) {
	client, err := a.client.get(ctx)
	if err != nil {
		return nil, err
	}
	out, err := client.Decrypt(ctx, &kms.DecryptInput{KeyId: &keyID, CiphertextBlob: wrapped, EncryptionAlgorithm: a.spec})
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
