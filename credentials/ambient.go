package credentials

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/skua-db/skua/fault"
)

// Ambient gives the process's own keys, found where the AWS SDK finds them: variables, profiles, the machine's or the pod's
// role. It looks at the first Key only, so that nothing is searched for a catalog that does not fall back to it.
type Ambient struct {
	load func() (aws.CredentialsProvider, error)
}

// NewAmbient makes the provider.
func NewAmbient() *Ambient {
	return &Ambient{load: sync.OnceValues(func() (aws.CredentialsProvider, error) {
		c, err := config.LoadDefaultConfig(context.Background())
		return c.Credentials, err
	})}
}

// Key implements Provider.
func (a *Ambient) Key(ctx context.Context, path string) (S3, error) {
	p, err := a.load()
	if err != nil || p == nil {
		return S3{}, fault.New(fault.Denied, "object %s: the catalog falls back to the process's own AWS keys, whose profile cannot be read", path)
	}
	c, err := p.Retrieve(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return S3{}, ctx.Err()
		}
		return S3{}, fault.New(fault.Denied, "object %s: the catalog falls back to the process's own AWS keys, and there are none", path)
	}
	return fromSDK(c), nil
}

// Refused implements Provider: the SDK's cache is told to ask again.
func (a *Ambient) Refused(string, S3) {
	if p, err := a.load(); err == nil {
		if cache, ok := p.(*aws.CredentialsCache); ok {
			cache.Invalidate()
		}
	}
}
