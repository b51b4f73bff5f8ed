package credentials

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
)

func TestAmbient(t *testing.T) {
	for _, v := range []string{"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		t.Setenv(v, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err := NewAmbient().Key(context.Background(), "s3://b/x")
	require.ErrorIs(t, err, fault.Denied)
	require.ErrorContains(t, err, "own AWS keys, and there are none")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "env-secret")
	a := NewAmbient()
	k, err := a.Key(context.Background(), "s3://b/x")
	require.NoError(t, err)
	require.Equal(t, "AKENV", k.AccessKeyID.Reveal())
	a.Refused("s3://b/x", k)
}
