package credentials

import (
	"context"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/skua-db/skua/fault"
)

// RoleProperties are the names of Iceberg's properties that describe a role to assume.
var RoleProperties = []string{
	"client.assume-role.arn", "client.assume-role.external-id", "client.assume-role.region", "client.assume-role.session-name",
	"client.assume-role.timeout-sec", "client.assume-role.web-identity-token-file", "sts.endpoint",
}

// KeyProperties are the names of Iceberg's properties that hold an S3 key.
var KeyProperties = []string{accessKeyProperty, secretKeyProperty, tokenProperty}

// sdk adapts a provider of the AWS SDK, which renews keys ahead of their expiry and asks once for all who wait.
type sdk struct {
	what  string
	cache *aws.CredentialsCache
}

// renewAhead is how long before its end a role's key is renewed.
const renewAhead = 2 * time.Minute

// Role gives the keys of a role, which AWS STS makes of other keys, or of the token in a file (web identity). base may be nil with a
// token file. Properties that do not fit are fault.Invalid.
func Role(p map[string]string, base Provider) (Provider, error) {
	arn := p["client.assume-role.arn"]
	life := time.Duration(0)
	if text := p["client.assume-role.timeout-sec"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			return nil, fault.New(fault.Invalid, "client.assume-role.timeout-sec %q is no number of seconds", text)
		}
		life = time.Duration(n) * time.Second
	}
	region := p["client.assume-role.region"]
	if region == "" {
		region = p["client.region"]
	}
	if region == "" {
		return nil, fault.New(fault.Invalid, "client.assume-role.arn needs client.assume-role.region or client.region")
	}
	session := p["client.assume-role.session-name"]
	if session == "" {
		session = "skua-" + strconv.Itoa(os.Getpid())
	}
	o := sts.Options{Region: region}
	if e := p["sts.endpoint"]; e != "" {
		o.BaseEndpoint = &e
	}
	var keys aws.CredentialsProvider
	if file := p["client.assume-role.web-identity-token-file"]; file != "" {
		keys = stscreds.NewWebIdentityRoleProvider(sts.New(o), arn, stscreds.IdentityTokenFile(file), func(r *stscreds.WebIdentityRoleOptions) {
			r.RoleSessionName, r.Duration = session, life
		})
	} else {
		if base == nil {
			return nil, fault.New(fault.Invalid, "client.assume-role.arn needs keys to assume the role with, or client.assume-role.web-identity-token-file")
		}
		o.Credentials = SDK(base)
		keys = stscreds.NewAssumeRoleProvider(sts.New(o), arn, func(r *stscreds.AssumeRoleOptions) {
			r.RoleSessionName, r.Duration = session, life
			if id := p["client.assume-role.external-id"]; id != "" {
				r.ExternalID = &id
			}
		})
	}
	return &sdk{"role " + arn, aws.NewCredentialsCache(keys, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = renewAhead })}, nil
}

// Key implements Provider.
func (s *sdk) Key(ctx context.Context, path string) (S3, error) {
	c, err := s.cache.Retrieve(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return S3{}, ctx.Err()
		}
		return S3{}, fault.New(fault.Denied, "object %s: %s gives no key: %v", path, s.what, err)
	}
	return fromSDK(c), nil
}

// Refused implements Provider.
func (s *sdk) Refused(string, S3) { s.cache.Invalidate() }

func fromSDK(c aws.Credentials) S3 {
	k := S3{AccessKeyID: NewSecret(c.AccessKeyID), SecretAccessKey: NewSecret(c.SecretAccessKey), SessionToken: NewSecret(c.SessionToken)}
	if c.CanExpire {
		k.Expires = c.Expires
	}
	return k
}

// Configured gives the keys that a catalog's properties name: a role's, fixed ones, or the process's own where
// ambient-fallback is true. ok is false when they name none.
func Configured(p map[string]string, ambient Provider) (keys Provider, ok bool, err error) {
	if k := FromProperties(p); k.Usable() {
		keys = NewStatic(k)
	} else if p["ambient-fallback"] == "true" && ambient != nil {
		keys = ambient
	}
	if p["client.assume-role.arn"] != "" {
		keys, err = Role(p, keys)
	}
	return keys, keys != nil, err
}

// SDK gives a provider's keys to a client of the AWS SDK.
func SDK(p Provider) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		k, err := p.Key(ctx, "")
		return aws.Credentials{AccessKeyID: k.AccessKeyID.Reveal(), SecretAccessKey: k.SecretAccessKey.Reveal(), SessionToken: k.SessionToken.Reveal(), Expires: k.Expires, CanExpire: !k.Expires.IsZero()}, err
	})
}
