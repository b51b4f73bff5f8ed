package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/server"
)

func bcryptHash(t *testing.T, password string) string {
	t.Helper()
	h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	require.NoError(t, err)
	return string(h)
}

func argon2Hash(password string) string {
	salt := []byte("a salt of some bytes")
	sum := argon2.IDKey([]byte(password), salt, 1, 64, 1, 32)
	e := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=19$m=64,t=1,p=1$%s$%s", e.EncodeToString(salt), e.EncodeToString(sum))
}

func TestArgon2Login(t *testing.T) {
	users := t.TempDir() + "/users"
	require.NoError(t, os.WriteFile(users, []byte("ann:"+argon2Hash("secret word")+"\n"), 0o600))
	cl := connect(t, start(t, server.AuthOptions{UsersFile: users}))
	ann, err := cl.Client.AuthenticateBasicToken(context.Background(), "ann", "secret word")
	require.NoError(t, err)
	_, err = count(ann, cl, "SELECT 1")
	require.NoError(t, err)
	_, err = cl.Client.AuthenticateBasicToken(context.Background(), "ann", "Secret word")
	require.ErrorContains(t, err, "user name or password is wrong")
}

// TestUsersFileIsChecked: a line that could let nobody in is told with its number, not found out by a user.
func TestUsersFileIsChecked(t *testing.T) {
	good := bcryptHash(t, "x")
	for line, want := range map[string]string{
		"ann": "line 3 is not of the form name:hash", ":" + good: "line 3 is not of the form name:hash", "ann:secret": "line 3: the hash is neither bcrypt",
		"ann:" + good[:40]: "line 3: the hash is neither bcrypt", "ann:$argon2id$v=19$m=64,t=1$c2FsdA$aGFzaA": "line 3: the argon2id hash",
		"ann:$argon2id$v=19$m=99999999,t=1,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaGhhc2g": "asks for too much", "bob:" + good: "bob stands twice",
	} {
		users := t.TempDir() + "/users"
		require.NoError(t, os.WriteFile(users, []byte("# people\nbob:"+good+"\n"+line+"\n"), 0o600))
		_, err := server.NewAuthenticator(server.AuthOptions{UsersFile: users})
		require.ErrorIs(t, err, fault.Invalid, line)
		require.ErrorContains(t, err, want, line)
	}
}
