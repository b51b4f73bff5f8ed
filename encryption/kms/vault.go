package kms

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/openbao/openbao/api/v2"

	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
)

// vaultKMS calls decrypt of the transit engine of HashiCorp Vault or OpenBao. Master keys are names of transit keys, and a
// wrapped key is the text that the engine's encrypt gave ("vault:v1:...").
type vaultKMS struct {
	client *api.Client
	mount  string
	login  func(context.Context) (string, error) // nil with a fixed token

	mu sync.Mutex // one login at a time
}

var vaultProvider = Provider{openVault, []string{
	"vault.url",
	"vault.token",
	"vault.token-file",
	"vault.role-id",
	"vault.secret-id",
	"vault.jwt-file",
	"vault.role",
	"vault.auth-mount",
	"vault.namespace",
	"vault.transit-mount",
	"vault.ca-file",
}}

func openVault(_ context.Context, p Properties) (encryption.KMS, error) {
	address, err := p.one("vault", "vault.url")
	if err != nil {
		return nil, err
	}
	c := api.DefaultConfig()
	if c.Error != nil {
		return nil, fault.New(fault.Invalid, "key management service vault: %v", c.Error)
	}
	if c.HttpClient, err = trusting(p["vault.ca-file"]); err != nil {
		return nil, err
	}
	c.Address, c.MaxRetries, c.DisableRedirects = address, 2, true
	client, err := api.NewClient(c)
	if err != nil {
		return nil, fault.New(fault.Invalid, "key management service vault: %v", err)
	}
	client.ClearToken() // what the process's environment holds is not ours to use
	client.SetNamespace(p["vault.namespace"])
	v := &vaultKMS{client: client, mount: strings.Trim(p["vault.transit-mount"], "/")}
	if v.mount == "" {
		v.mount = "transit"
	}
	mount := func(byDefault string) string {
		if m := strings.Trim(p["vault.auth-mount"], "/"); m != "" {
			return "auth/" + m + "/login"
		}
		return "auth/" + byDefault + "/login"
	}
	switch {
	case p["vault.token"] != "":
		client.SetToken(p["vault.token"])
	case p["vault.token-file"] != "":
		v.login = func(context.Context) (string, error) {
			raw, err := os.ReadFile(p["vault.token-file"])
			return strings.TrimSpace(string(raw)), fault.Wrap(fault.Unavailable, err, "vault.token-file")
		}
	case p["vault.role-id"] != "":
		v.login = func(ctx context.Context) (string, error) {
			return v.enter(ctx, mount("approle"), map[string]any{"role_id": p["vault.role-id"], "secret_id": p["vault.secret-id"]})
		}
	case p["vault.jwt-file"] != "":
		v.login = func(ctx context.Context) (string, error) {
			raw, err := os.ReadFile(p["vault.jwt-file"])
			if err != nil {
				return "", fault.Wrap(fault.Unavailable, err, "vault.jwt-file")
			}
			return v.enter(ctx, mount("kubernetes"), map[string]any{"role": p["vault.role"], "jwt": strings.TrimSpace(string(raw))})
		}
	default:
		return nil, fault.New(fault.Invalid, "key management service vault needs vault.token, vault.token-file, vault.role-id with vault.secret-id, or vault.jwt-file with vault.role")
	}
	return v, nil
}

// enter logs in and gives the token.
func (v *vaultKMS) enter(ctx context.Context, path string, body map[string]any) (string, error) {
	out, err := v.client.Logical().WriteWithContext(ctx, path, body)
	if err != nil {
		return "", vaultFailure("", err)
	}
	if out == nil || out.Auth == nil || out.Auth.ClientToken == "" {
		return "", fault.New(fault.Unavailable, "Vault gave no token at %s", path)
	}
	return out.Auth.ClientToken, nil
}

// transitKey is the form of a transit key's name. The name becomes part of a path, and a table writes it.
var transitKey = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,255}$`)

// Unwrap implements encryption.KMS. A token that is refused is renewed once by logging in again.
func (v *vaultKMS) Unwrap(ctx context.Context, keyID string, wrapped []byte) (encryption.Key, error) {
	if !transitKey.MatchString(keyID) {
		return nil, fault.New(fault.Corrupt, "master key %q is no name of a transit key", keyID)
	}
	token, err := v.token(ctx, "")
	if err != nil {
		return nil, err
	}
	key, err := v.decrypt(ctx, keyID, wrapped)
	if errors.Is(err, fault.Denied) && v.login != nil {
		if _, err := v.token(ctx, token); err != nil {
			return nil, err
		}
		return v.decrypt(ctx, keyID, wrapped)
	}
	return key, err
}

// token makes sure that there is a token, and another than the refused one.
func (v *vaultKMS) token(ctx context.Context, refused string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if held := v.client.Token(); v.login == nil || held != "" && held != refused {
		return held, nil
	}
	v.client.ClearToken()
	token, err := v.login(ctx)
	if err != nil {
		return "", err
	}
	v.client.SetToken(token)
	return token, nil
}

func (v *vaultKMS) decrypt(ctx context.Context, keyID string, wrapped []byte) (encryption.Key, error) {
	out, err := v.client.Logical().WriteWithContext(ctx, v.mount+"/decrypt/"+keyID, map[string]any{"ciphertext": string(wrapped)})
	if err != nil {
		return nil, vaultFailure(keyID, err)
	}
	var text string
	if out != nil {
		text, _ = out.Data["plaintext"].(string)
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || text == "" {
		return nil, fault.New(fault.Unavailable, "Vault's answer for master key %q is no plaintext", keyID)
	}
	return key, nil
}

func vaultFailure(keyID string, err error) error {
	const kind = "Vault"
	var answer *api.ResponseError
	if !errors.As(err, &answer) {
		return failure(kind, keyID, 0, err.Error())
	}
	status, text := answer.StatusCode, strings.Join(answer.Errors, "; ")
	if status == http.StatusBadRequest && strings.Contains(text, "encryption key not found") {
		status = http.StatusNotFound
	}
	return failure(kind, keyID, status, text)
}
