package encryption

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	testKey = Key("0123456789012345")
	testAAD = []byte("1234567890123456")
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func TestKeyMetadataVectors(t *testing.T) {
	head := "0120" + hex.EncodeToString(testKey)
	for _, c := range []struct {
		bytes  string
		aad    []byte
		length int64
	}{
		{head + "0220" + hex.EncodeToString(testAAD) + "00", testAAD, -1},
		{head + "0220" + hex.EncodeToString(testAAD) + "0298a5b702", testAAD, 2550092},
		{head + "0000", nil, -1},
	} {
		m, err := ParseKeyMetadata(unhex(t, c.bytes))
		require.NoError(t, err)
		require.Equal(t, KeyMetadata{testKey, c.aad, c.length}, m)
		for n := range len(c.bytes) / 2 {
			_, err := ParseKeyMetadata(unhex(t, c.bytes)[:n])
			require.Error(t, err, "cut to %d bytes", n)
		}
		_, err = ParseKeyMetadata(append(unhex(t, c.bytes), 0))
		require.ErrorContains(t, err, "after its end")
	}
	_, err := ParseKeyMetadata(append([]byte{2}, unhex(t, head+"0000")[1:]...))
	require.ErrorIs(t, err, fault.Corrupt)
	require.ErrorContains(t, err, "version 2")
	_, err = ParseKeyMetadata(unhex(t, "0106aabbcc0000"))
	require.ErrorContains(t, err, "3 bytes")
}

// sealStream makes an AGS1 stream with fixed nonces: the number of the block, twelve times.
func sealStream(t testing.TB, plain []byte) []byte {
	t.Helper()
	a, err := newGCM(testKey)
	require.NoError(t, err)
	out := append([]byte(streamMagic), 0, 0, 0x10, 0)
	for i := 0; i == 0 || len(plain) > 0; i++ {
		n := min(len(plain), blockBytes)
		nonce := make([]byte, nonceBytes)
		for k := range nonce {
			nonce[k] = byte(i)
		}
		out = append(out, nonce...)
		out = a.Seal(out, nonce, plain[:n], binary.LittleEndian.AppendUint32(append([]byte(nil), testAAD...), uint32(i)))
		plain = plain[n:]
	}
	return out
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for j := range b {
		b[j] = byte(31*j + 7)
	}
	return b
}

func openTest(sealed []byte, trusted int64) (storage.Object, error) {
	return OpenStream(context.Background(), storagetest.Bytes(sealed), KeyMetadata{testKey, testAAD, -1}, trusted)
}

func TestStreamVectors(t *testing.T) {
	require.Equal(t, "4147533100001000000000000000000000000000d44c5715769e2fd3c4bf36aee812ea74", hex.EncodeToString(sealStream(t, nil)))
	require.Equal(t, "4147533100001000000000000000000000000000c56517a1e1325006957208f5a43bd3f639931263dcd0e0", hex.EncodeToString(sealStream(t, []byte("iceberg"))))
	plain := pattern(2_550_000)
	sealed := sealStream(t, plain)
	require.Len(t, sealed, 2_550_092)
	require.Equal(t, "7ee4e88bb5440b2b59c47ee7470d5e4033d49fc844bbe6a7762695e710bffac4", fmt.Sprintf("%x", sha256.Sum256(sealed)))
	o, err := openTest(sealed, int64(len(sealed)))
	require.NoError(t, err)
	require.EqualValues(t, len(plain), o.Size())
	for _, r := range []storage.Range{{Offset: 0, Length: 1}, {Offset: 2_000_000, Length: 100}, {Offset: blockBytes - 1, Length: 2}, {Offset: 0, Length: 2_550_000}, {Offset: 2_550_000}, {Offset: 2_549_999, Length: 1}} {
		dst := [][]byte{make([]byte, r.Length)}
		require.NoError(t, o.ReadRanges(context.Background(), []storage.Range{r}, dst))
		require.Equal(t, plain[r.Offset:r.End()], dst[0], "%v", r)
	}
	err = o.ReadRanges(context.Background(), []storage.Range{{Offset: 2_550_000, Length: 1}}, [][]byte{make([]byte, 1)})
	require.ErrorIs(t, err, fault.Corrupt)
}

func TestStreamLengths(t *testing.T) {
	for _, c := range []struct{ stored, plain, blocks int64 }{
		{36, 0, 1}, {37, 1, 1}, {1_048_612, 1_048_576, 1}, {1_048_641, 1_048_577, 2}, {2_550_092, 2_550_000, 3},
	} {
		plain, blocks, err := streamLength(c.stored)
		require.NoError(t, err, c.stored)
		require.Equal(t, [2]int64{c.plain, c.blocks}, [2]int64{plain, blocks}, c.stored)
	}
	for _, bad := range []int64{0, 8, 35, 1_048_613, 1_048_639, 1_048_640} {
		_, _, err := streamLength(bad)
		require.ErrorIs(t, err, fault.Corrupt, "%d", bad)
	}
}

func TestStreamsFailClosed(t *testing.T) {
	sealed := sealStream(t, pattern(2_100_000))
	size := int64(len(sealed))
	whole := func(b []byte, trusted int64, m KeyMetadata) error {
		o, err := OpenStream(context.Background(), storagetest.Bytes(b), m, trusted)
		if err != nil {
			return err
		}
		return o.ReadRanges(context.Background(), []storage.Range{{Length: o.Size()}}, [][]byte{make([]byte, o.Size())})
	}
	good := KeyMetadata{testKey, testAAD, -1}
	require.NoError(t, whole(sealed, size, good))
	flip := func(at int) []byte {
		b := append([]byte(nil), sealed...)
		b[at] ^= 1
		return b
	}
	dropped := sealed[:8+2*sealedBlock] // decrypts block by block
	for name, err := range map[string]error{
		"a dropped block":        whole(dropped, size, good),
		"no trusted length":      whole(sealed, -1, good),
		"two lengths":            whole(sealed, size, KeyMetadata{testKey, testAAD, size - 1}),
		"another magic":          whole(flip(0), size, good),
		"another block length":   whole(flip(4), size, good),
		"a nonce":                whole(flip(8), size, good),
		"ciphertext":             whole(flip(1_500_000), size, good),
		"the last tag":           whole(flip(len(sealed)-1), size, good),
		"another key":            whole(sealed, size, KeyMetadata{Key("1123456789012345"), testAAD, -1}),
		"another prefix":         whole(sealed, size, KeyMetadata{testKey, nil, -1}),
		"a key of no length":     whole(sealed, size, KeyMetadata{testKey[:10], testAAD, -1}),
		"an empty stream's tag":  whole(append(sealStream(t, nil)[:35], 0), 36, good),
		"plaintext in its place": whole(pattern(100), 100, good),
	} {
		require.ErrorIs(t, err, fault.Corrupt, name)
		require.NotContains(t, err.Error(), "0123456789", name)
	}
}

// sealed makes nonce, ciphertext and tag with a nonce of zeros.
func sealed(t testing.TB, k Key, plain, aad []byte) []byte {
	t.Helper()
	a, err := newGCM(k)
	require.NoError(t, err)
	nonce := make([]byte, nonceBytes)
	return a.Seal(nonce, nonce, plain, aad)
}

func ringOf(t *testing.T, kms KMS) *Keyring {
	if kms == nil {
		return nil
	}
	r := KeyringOf(kms)
	t.Cleanup(r.Close)
	return r
}

func TestChain(t *testing.T) {
	ctx := context.Background()
	kek := Key("kekkekkekkekkek1")
	kms, err := NewLocalKMS(map[string]Key{"master": testKey})
	require.NoError(t, err)
	meta := unhex(t, "0120"+hex.EncodeToString(testKey)+"0000")
	keys := func(change func(kek, list *WrappedKey)) []WrappedKey {
		k := WrappedKey{"kek", sealed(t, testKey, kek, nil), "master", map[string]string{"KEY_TIMESTAMP": "1781172301703"}}
		l := WrappedKey{"list", sealed(t, kek, meta, []byte("1781172301703")), "kek", nil}
		change(&k, &l)
		return []WrappedKey{k, l}
	}
	m, err := NewChain(ringOf(t, kms), "t", "master", keys(func(_, _ *WrappedKey) {})).ManifestList(ctx, "list")
	require.NoError(t, err)
	require.Equal(t, testKey, m.Key)
	for name, c := range map[string]struct {
		kms    KMS
		id     string
		change func(kek, list *WrappedKey)
		text   string
	}{
		"no service":             {nil, "list", func(_, _ *WrappedKey) {}, "no key management service"},
		"a lost key":             {kms, "other", func(_, _ *WrappedKey) {}, `"other" is not among`},
		"a key encryption key":   {kms, "kek", func(_, _ *WrappedKey) {}, "not encrypted under a key of the table"},
		"a missing parent":       {kms, "list", func(k, _ *WrappedKey) { k.ID = "else" }, `"kek", which is not among`},
		"another master":         {kms, "list", func(k, _ *WrappedKey) { k.EncryptedBy = "skua-absent" }, "master key is"},
		"a cycle":                {kms, "list", func(k, _ *WrappedKey) { k.EncryptedBy = "list" }, "master key is"},
		"no timestamp":           {kms, "list", func(k, _ *WrappedKey) { k.Properties = nil }, "KEY_TIMESTAMP"},
		"another timestamp":      {kms, "list", func(k, _ *WrappedKey) { k.Properties = map[string]string{"KEY_TIMESTAMP": "1"} }, "authentication failed"},
		"an altered wrapped key": {kms, "list", func(k, _ *WrappedKey) { k.Metadata[15] ^= 1 }, "authentication failed"},
		"an altered entry":       {kms, "list", func(_, l *WrappedKey) { l.Metadata[15] ^= 1 }, "authentication failed"},
		"a short entry":          {kms, "list", func(_, l *WrappedKey) { l.Metadata = l.Metadata[:20] }, "too few"},
	} {
		_, err := NewChain(ringOf(t, c.kms), "t", "master", keys(c.change)).ManifestList(ctx, c.id)
		require.ErrorContains(t, err, c.text, name)
	}
}

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write := func(text string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		require.NoError(t, os.Chmod(path, mode))
	}
	write("# keys\n\nmaster "+hex.EncodeToString(testKey)+"\n", 0o600)
	kms, err := ReadKeyFile(path)
	require.NoError(t, err)
	key, err := kms.Unwrap(context.Background(), "master", sealed(t, testKey, testKey, nil))
	require.NoError(t, err)
	require.Equal(t, testKey, key)
	_, err = kms.Unwrap(context.Background(), "other", nil)
	require.ErrorIs(t, err, fault.NotFound)
	write("master "+hex.EncodeToString(testKey), 0o644)
	_, err = ReadKeyFile(path)
	require.ErrorContains(t, err, "0600")
	for text, want := range map[string]string{"master": "line 1", "master zz": "line 1", "a 00": `"a" has 1 bytes`, "a " + hex.EncodeToString(testKey) + "\na " + hex.EncodeToString(testKey): "stands twice"} {
		write(text, 0o600)
		_, err = ReadKeyFile(path)
		require.ErrorContains(t, err, want, text)
	}
}

func TestKeysHaveNoText(t *testing.T) {
	m := KeyMetadata{Key: testKey}
	text, err := json.Marshal(m)
	require.NoError(t, err)
	for _, s := range []string{fmt.Sprint(m), fmt.Sprintf("%v %+v %#v %s", m, m, m.Key, m.Key), string(text)} {
		require.NotContains(t, s, "0123456789")
		require.NotContains(t, s, hex.EncodeToString(testKey))
	}
}

func TestParquetModules(t *testing.T) {
	m := KeyMetadata{Key: testKey, AADPrefix: testAAD}
	f, err := m.Parquet(ParquetAlgorithm{Unique: []byte("unique")})
	require.NoError(t, err)
	aad := append(append(append([]byte(nil), testAAD...), "unique"...), 2, 1, 0, 3, 0, 4, 1)
	module := sealed(t, testKey, []byte("page"), aad)
	plain, err := f.Open(nil, 2, 1, 3, 260, module)
	require.NoError(t, err)
	require.Equal(t, "page", string(plain))
	for _, bad := range [][3]int{{1, 3, 261}, {0, 3, 260}, {1, 2, 260}, {1, 3, NoOrdinal}, {1, 3, 1 << 15}} {
		_, err := f.Open(nil, 2, bad[0], bad[1], bad[2], module)
		require.ErrorIs(t, err, fault.Corrupt, "%v", bad)
	}
	_, err = m.Parquet(ParquetAlgorithm{Unique: []byte("unique"), StoredPrefix: []byte("another prefix")})
	require.ErrorIs(t, err, fault.Corrupt)
}

func FuzzKeyMetadata(f *testing.F) {
	f.Add(unhex(f, "0120"+hex.EncodeToString(testKey)+"0000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := ParseKeyMetadata(b); err != nil {
			var e *fault.Error
			require.ErrorAs(t, err, &e)
		}
	})
}

func FuzzStream(f *testing.F) {
	f.Add(sealStream(f, []byte("iceberg")))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := openTest(b, int64(len(b)))
		if err != nil {
			require.NotEqual(t, fault.Internal, fault.KindOf(err))
			return
		}
		if err := o.ReadRanges(context.Background(), []storage.Range{{Length: o.Size()}}, [][]byte{make([]byte, o.Size())}); err != nil {
			require.ErrorIs(t, err, fault.Corrupt)
		}
	})
}
