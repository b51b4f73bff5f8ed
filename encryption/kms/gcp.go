package kms

import (
	"context"
	"errors"
	"hash/crc32"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	kms "cloud.google.com/go/kms/apiv1"
	"cloud.google.com/go/kms/apiv1/kmspb"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
)

// gcpKMS calls decrypt of Google Cloud KMS without associated data, as Iceberg's GcpKeyManagementClient does. Master keys are
// named by the resource name of a CryptoKey.
type gcpKMS struct {
	options []option.ClientOption

	mu   sync.Mutex
	made *kms.KeyManagementClient // at the first use: it may look for the identity of the process
}

var gcpProvider = Provider{openGCP, []string{
	"kms.endpoint",
	"gcs.oauth2.token",
	"gcs.oauth2.token-expires-at",
	"gcp.credentials-file",
	"ambient-fallback",
}}

func openGCP(_ context.Context, p Properties) (encryption.KMS, error) {
	var options []option.ClientOption
	switch {
	case p["gcs.oauth2.token"] != "":
		t := &oauth2.Token{AccessToken: p["gcs.oauth2.token"], TokenType: "Bearer"}
		if text := p["gcs.oauth2.token-expires-at"]; text != "" {
			ms, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fault.New(fault.Invalid, "key management service gcp: gcs.oauth2.token-expires-at %q is no time in milliseconds", text)
			}
			t.Expiry = time.UnixMilli(ms)
		}
		options = append(options, option.WithTokenSource(oauth2.StaticTokenSource(t)))
	case p["gcp.credentials-file"] != "":
		options = append(options, option.WithAuthCredentialsFile(option.ServiceAccount, p["gcp.credentials-file"]))
	case !p.ambient():
		return nil, fault.New(fault.Invalid, "key management service gcp needs gcs.oauth2.token, gcp.credentials-file, or ambient-fallback: true for the identity of the process")
	}
	if e := p["kms.endpoint"]; e != "" {
		options = append(options, option.WithEndpoint(e))
	}
	return &gcpKMS{options: options}, nil
}

func (g *gcpKMS) client() (*kms.KeyManagementClient, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.made != nil {
		return g.made, nil
	}
	// The client outlives the call that makes it.
	c, err := kms.NewKeyManagementRESTClient(context.Background(), g.options...)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "key management service gcp")
	}
	g.made = c
	return c, nil
}

// gcpKey is the form of a CryptoKey's name. The name becomes part of a path, and a table writes it.
var gcpKey = regexp.MustCompile(`^projects/[A-Za-z0-9:._-]{1,63}/locations/[A-Za-z0-9-]{1,63}/keyRings/[A-Za-z0-9_-]{1,63}/cryptoKeys/[A-Za-z0-9_-]{1,63}$`)

// Unwrap implements encryption.KMS.
func (g *gcpKMS) Unwrap(ctx context.Context, keyID string, wrapped []byte) (encryption.Key, error) {
	if !gcpKey.MatchString(keyID) {
		return nil, fault.New(fault.Corrupt, "master key %q is not of the form projects/P/locations/L/keyRings/R/cryptoKeys/K", keyID)
	}
	client, err := g.client()
	if err != nil {
		return nil, err
	}
	sum := func(b []byte) int64 { return int64(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))) }
	out, err := client.Decrypt(ctx, &kmspb.DecryptRequest{Name: keyID, Ciphertext: wrapped, CiphertextCrc32C: wrapperspb.Int64(sum(wrapped))})
	if err != nil {
		return nil, gcpFailure(keyID, err)
	}
	if c := out.PlaintextCrc32C; c != nil && c.Value != sum(out.Plaintext) {
		return nil, fault.New(fault.Unavailable, "Google Cloud KMS: the answer for master key %q was damaged on its way", keyID)
	}
	return out.Plaintext, nil
}

func gcpFailure(keyID string, err error) error {
	const kind = "Google Cloud KMS"
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		if strings.Contains(answer.Body, `"FAILED_PRECONDITION"`) {
			answer.Code = http.StatusForbidden // the key is disabled or destroyed, told by status 400
		}
		return failure(kind, keyID, answer.Code, answer.Message)
	}
	return failure(kind, keyID, 0, err.Error())
}
