package scanner

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"

	"github.com/pierrec/lz4/v4"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// puffinBlob is a blob as the footer of a Puffin file describes it (Puffin spec: BlobMetadata).
type puffinBlob struct {
	Type           string            `json:"type"`
	Fields         []int             `json:"fields"`
	SnapshotID     int64             `json:"snapshot-id"`
	SequenceNumber int64             `json:"sequence-number"`
	Offset         int64             `json:"offset"`
	Length         int64             `json:"length"`
	Codec          string            `json:"compression-codec"`
	Properties     map[string]string `json:"properties"`
}

const (
	puffinMagic = "PFA1"
	puffinTail  = 12 // payload size, flags, magic
	// puffinCompressed is the flag of a payload that is an LZ4 frame; no other is known.
	puffinCompressed = 1
	// maxPuffinFooter bounds the payload of a footer, in bytes, as it is read and as it is unpacked.
	maxPuffinFooter = 64 << 20
)

// puffinFooter reads the blobs that a Puffin file lists (Puffin spec: File structure). Whatever contradicts the structure is fault.Corrupt:
// magic numbers, flags, sizes, blobs that do not lie between the first magic number and the footer.
func puffinFooter(ctx context.Context, o storage.Object) ([]puffinBlob, error) {
	bad := func(format string, args ...any) ([]puffinBlob, error) {
		return nil, fault.New(fault.Corrupt, format, args...)
	}
	if o.Size() < int64(2*len(puffinMagic)+puffinTail) {
		return bad("it has %d bytes, fewer than a Puffin file", o.Size())
	}
	head, end := make([]byte, len(puffinMagic)), make([]byte, puffinTail)
	ranges := []storage.Range{{Offset: 0, Length: int64(len(head))}, {Offset: o.Size() - puffinTail, Length: puffinTail}}
	if err := o.ReadRanges(ctx, ranges, [][]byte{head, end}); err != nil {
		return nil, err
	}
	n := int64(int32(binary.LittleEndian.Uint32(end)))
	flags := binary.LittleEndian.Uint32(end[4:])
	start := o.Size() - puffinTail - n - int64(len(puffinMagic)) // of the footer
	switch {
	case string(head) != puffinMagic || string(end[8:]) != puffinMagic:
		return bad("it does not begin and end with %s", puffinMagic)
	case flags&^puffinCompressed != 0:
		return bad("its footer has flags %#x, of which only bit 0 is known", flags)
	case n <= 0 || n > maxPuffinFooter || start < int64(len(puffinMagic)):
		return bad("its footer says that it has %d bytes, in a file of %d", n, o.Size())
	}
	payload := make([]byte, int64(len(puffinMagic))+n)
	if err := o.ReadRanges(ctx, []storage.Range{{Offset: start, Length: int64(len(payload))}}, [][]byte{payload}); err != nil {
		return nil, err
	}
	if string(payload[:len(puffinMagic)]) != puffinMagic {
		return bad("its footer does not begin with %s", puffinMagic)
	}
	text := payload[len(puffinMagic):]
	if flags&puffinCompressed != 0 {
		var err error
		if text, err = io.ReadAll(io.LimitReader(lz4.NewReader(bytes.NewReader(text)), maxPuffinFooter+1)); err != nil || len(text) > maxPuffinFooter {
			return bad("its footer is no LZ4 frame of at most %d bytes: %v", maxPuffinFooter, err)
		}
	}
	var doc struct {
		Blobs []puffinBlob `json:"blobs"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return bad("its footer is not JSON: %v", err)
	}
	for i, b := range doc.Blobs {
		if b.Offset < int64(len(puffinMagic)) || b.Length < 0 || b.Offset > start || b.Length > start-b.Offset {
			return bad("blob %d (%.40q) is at bytes %d to %d, outside the %d bytes of blobs", i, b.Type, b.Offset, b.Offset+b.Length, start)
		}
	}
	return doc.Blobs, nil
}

// puffinReferences reads from a Puffin footer which data file the vector at each offset is for. A file without a footer that
// can be read gives none: writers exist that leave it out, and vectors are found by offset.
func puffinReferences(ctx context.Context, o storage.Object) (map[int64]string, error) {
	blobs, err := puffinFooter(ctx, o)
	if errors.Is(err, fault.Corrupt) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	refs := map[int64]string{}
	for _, b := range blobs {
		if path, ok := b.Properties["referenced-data-file"]; ok && b.Type == "deletion-vector-v1" {
			refs[b.Offset] = path
		}
	}
	return refs, nil
}
