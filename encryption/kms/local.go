package kms

import (
	"context"

	"github.com/skua-db/skua/encryption"
)

var localProvider = Provider{openLocal, []string{
	"key-file",
}}

// openLocal reads master keys from the file that key-file names.
func openLocal(_ context.Context, p Properties) (encryption.KMS, error) {
	path, err := p.one("local", "key-file")
	if err != nil {
		return nil, err
	}
	return encryption.ReadKeyFile(path)
}
