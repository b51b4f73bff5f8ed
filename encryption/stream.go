package encryption

import (
	"context"
	"crypto/cipher"
	"encoding/binary"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// The layout of an AGS1 stream: magic, block length, then blocks of nonce, ciphertext and tag (gcm-stream-spec).
const (
	streamMagic  = "AGS1"
	streamHead   = 8
	blockBytes   = 1 << 20
	sealedBlock  = nonceBytes + blockBytes + tagBytes
	emptyStream  = streamHead + nonceBytes + tagBytes
	readAtOnce   = 8 // blocks decrypted from one ranged read
	magicRequest = streamHead
)

// OpenStream gives the plaintext of an AGS1 stream as an object with random access. trusted is the length as stored, from an
// authenticated parent; -1 takes the key metadata's own. The object must have exactly that length: a shorter one has lost blocks,
// which the stream itself cannot show. No byte of a block is given out before its tag was checked. Closing it closes o.
func OpenStream(ctx context.Context, o storage.Object, m KeyMetadata, trusted int64) (storage.Object, error) {
	switch {
	case trusted < 0:
		trusted = m.Length
	case m.Length >= 0 && m.Length != trusted:
		return nil, fault.New(fault.Corrupt, "the key metadata says %d bytes, the file's entry %d", m.Length, trusted)
	}
	if trusted < 0 {
		return nil, fault.New(fault.Corrupt, "nothing that is authenticated says how long the encrypted file is")
	}
	if o.Size() != trusted {
		return nil, fault.New(fault.Corrupt, "the encrypted file has %d bytes and must have %d", o.Size(), trusted)
	}
	plain, blocks, err := streamLength(trusted)
	if err != nil {
		return nil, err
	}
	head := make([]byte, magicRequest)
	if err := o.ReadRanges(ctx, []storage.Range{{Length: magicRequest}}, [][]byte{head}); err != nil {
		return nil, err
	}
	if string(head[:4]) != streamMagic {
		return nil, fault.New(fault.Corrupt, "the file has a key and is not encrypted (magic %q, not AGS1)", head[:4])
	}
	if n := binary.LittleEndian.Uint32(head[4:]); n != blockBytes {
		return nil, fault.New(fault.Corrupt, "the encrypted file has blocks of %d bytes, not of %d", n, blockBytes)
	}
	a, err := newGCM(m.Key)
	if err != nil {
		return nil, err
	}
	s := &stream{o: o, aead: a, aad: m.AADPrefix, stored: trusted, plain: plain, blocks: blocks}
	if plain == 0 { // a stream without bytes still has a tag to check
		_, err = s.block(ctx, 0, 1)
	}
	return s, err
}

// streamLength tells the plaintext's length and the number of blocks of a stream of so many bytes.
func streamLength(stored int64) (plain, blocks int64, err error) {
	if stored < emptyStream {
		return 0, 0, fault.New(fault.Corrupt, "%d bytes are too few for an encrypted file", stored)
	}
	body := stored - streamHead
	full, rest := body/sealedBlock, body%sealedBlock
	if rest != 0 && (rest < nonceBytes+tagBytes || rest == nonceBytes+tagBytes && full > 0) {
		return 0, 0, fault.New(fault.Corrupt, "%d bytes are no length of an encrypted file", stored)
	}
	plain, blocks = full*blockBytes, full
	if rest > 0 {
		plain, blocks = plain+rest-nonceBytes-tagBytes, blocks+1
	}
	return plain, blocks, nil
}

type stream struct {
	o                     storage.Object
	aead                  cipher.AEAD
	aad                   []byte
	stored, plain, blocks int64
}

func (s *stream) Size() int64  { return s.plain }
func (s *stream) Close() error { return s.o.Close() }

// StoredSize is the length of the encrypted file.
func (s *stream) StoredSize() int64 { return s.stored }

// ReadRanges implements storage.Object on the plaintext.
func (s *stream) ReadRanges(ctx context.Context, ranges []storage.Range, dst [][]byte) error {
	for i, r := range ranges {
		if r.Offset < 0 || r.Length < 0 || r.Offset > s.plain || r.Length > s.plain-r.Offset {
			return fault.New(fault.Corrupt, "bytes %d to %d were asked for of %d decrypted ones", r.Offset, r.End(), s.plain)
		}
		if err := s.read(ctx, r, dst[i][:r.Length]); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) read(ctx context.Context, r storage.Range, dst []byte) error {
	for at := r.Offset; at < r.End(); {
		first := at / blockBytes
		count := min((r.End()-1)/blockBytes-first+1, readAtOnce)
		plain, err := s.block(ctx, first, count)
		if err != nil {
			return err
		}
		at += int64(copy(dst[at-r.Offset:], plain[at-first*blockBytes:]))
	}
	return nil
}

// block decrypts count blocks from first on.
func (s *stream) block(ctx context.Context, first, count int64) ([]byte, error) {
	begin := int64(streamHead) + first*sealedBlock
	end := min(s.stored, begin+count*sealedBlock)
	sealed := make([]byte, end-begin)
	if err := s.o.ReadRanges(ctx, []storage.Range{{Offset: begin, Length: end - begin}}, [][]byte{sealed}); err != nil {
		return nil, err
	}
	out := make([]byte, 0, count*blockBytes)
	aad := append(append([]byte(nil), s.aad...), 0, 0, 0, 0)
	for i := first; i < first+count; i++ {
		n := min(len(sealed), sealedBlock)
		binary.LittleEndian.PutUint32(aad[len(aad)-4:], uint32(i))
		var err error
		if out, err = open(s.aead, out, sealed[:n], aad); err != nil {
			return nil, fault.Wrap(fault.Corrupt, err, "block %d", i)
		}
		sealed = sealed[n:]
	}
	return out, nil
}
