package kms

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
)

const gcpMaster = "projects/p/locations/global/keyRings/r/cryptoKeys/lake"

// gcpServer speaks cryptoKeys.decrypt of Cloud KMS's REST interface.
func gcpServer(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, name, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "message": text, "status": name}})
	}
	sum := func(b []byte) string { return fmt.Sprint(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))) }
	var body struct{ Ciphertext, CiphertextCrc32c, AdditionalAuthenticatedData string }
	err := json.NewDecoder(r.Body).Decode(&body)
	wrapped, _ := base64.StdEncoding.DecodeString(body.Ciphertext)
	switch {
	case r.Header.Get("Authorization") == "Bearer weak":
		fail(403, "PERMISSION_DENIED", "Permission 'cloudkms.cryptoKeyVersions.useToDecrypt' denied")
	case r.Header.Get("Authorization") != "Bearer good":
		fail(401, "UNAUTHENTICATED", "invalid authentication credentials")
	case r.Method != http.MethodPost || err != nil || body.AdditionalAuthenticatedData != "":
		fail(400, "INVALID_ARGUMENT", "bad request")
	case r.URL.Path == "/v1/"+gcpMaster+"-off:decrypt":
		fail(400, "FAILED_PRECONDITION", "it is not enabled, current state is: DISABLED")
	case r.URL.Path != "/v1/"+gcpMaster+":decrypt":
		fail(404, "NOT_FOUND", "CryptoKey not found")
	case string(wrapped) != "wrapped" || body.CiphertextCrc32c != sum(wrapped):
		fail(400, "INVALID_ARGUMENT", "Decryption failed: the ciphertext is invalid.")
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"plaintext": base64.StdEncoding.EncodeToString(dataKey), "plaintextCrc32c": sum(dataKey)})
	}
}

func TestGCP(t *testing.T) {
	ctx := context.Background()
	url := serveClear(t, http.HandlerFunc(gcpServer))
	open := func(token string) func(key, wrapped string) error {
		c, err := Open(ctx, "gcp", Properties{"kms.endpoint": url, "gcs.oauth2.token": token})
		require.NoError(t, err)
		return func(key, wrapped string) error {
			got, err := c.Unwrap(ctx, key, []byte(wrapped))
			if err == nil {
				require.Equal(t, dataKey, got)
			}
			return err
		}
	}
	good := open("good")
	require.NoError(t, good(gcpMaster, "wrapped"))
	refused(t, good(gcpMaster, "changed"), fault.Corrupt)
	refused(t, good(gcpMaster+"-none", "wrapped"), fault.NotFound)
	refused(t, good(gcpMaster+"-off", "wrapped"), fault.Denied)
	refused(t, good("projects/p/../../secrets", "wrapped"), fault.Corrupt)
	refused(t, open("weak")(gcpMaster, "wrapped"), fault.Denied, "weak")
	refused(t, open("forged")(gcpMaster, "wrapped"), fault.Denied, "forged")
	_, err := Open(ctx, "gcp", Properties{"gcs.oauth2.token": "x", "gcs.oauth2.token-expires-at": "soon"})
	refused(t, err, fault.Invalid)
}
