package server

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// Batches are gathered to about batchBytes, well below the 4 MiB that gRPC clients take by default.
const (
	batchBytes = 1 << 20
	batchRows  = 64 << 10
)

// rowWriter sends record batches of one schema.
type rowWriter struct {
	w      *flight.Writer
	schema *arrow.Schema
	m      *measure
	limits ResultLimits
}

func newRowWriter(m *measure, schema *arrow.Schema) *rowWriter {
	return &rowWriter{w: flight.NewRecordWriter(m.sent, ipc.WithSchema(schema)), schema: schema, m: m}
}

// batch sends one batch and releases it. What is over a limit is an error and never cut off unseen.
func (o *rowWriter) batch(rec arrow.RecordBatch) error {
	defer rec.Release()
	rows := o.m.rows.Add(rec.NumRows())
	if err := o.limits.over(rows, o.m.sent.bytes.Load(), o.m.scanned()); err != nil {
		return err
	}
	return o.w.Write(rec)
}

// text sends an answer of one text.
func (o *rowWriter) text(s string) error {
	b := array.NewRecordBuilder(memory.DefaultAllocator, o.schema)
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append(s)
	return o.batch(b.NewRecordBatch())
}

// close ends the stream; without any batch the client still gets the schema.
func (o *rowWriter) close() error {
	if err := o.limits.over(0, o.m.sent.bytes.Load(), o.m.scanned()); err != nil {
		return err
	}
	return o.w.Close()
}

// chunkWriter gathers chunks into batches.
type chunkWriter struct {
	out      *rowWriter
	b        *vector.Batcher
	rowBytes int // of the rows seen, to keep a batch of wide rows small
}

func newChunkWriter(out *rowWriter, b *vector.Batcher) *chunkWriter {
	return &chunkWriter{out: out, b: b, rowBytes: batchBytes / 64}
}

// chunk adds the rows of c, sending batches as they fill.
func (w *chunkWriter) chunk(c *vector.Chunk) error {
	for at, n := 0, c.Rows(); at < n; {
		room := max(1, (batchBytes-w.b.Bytes())/max(1, w.rowBytes))
		to := min(n, at+room)
		if err := w.b.Append(c, at, to); err != nil {
			return err
		}
		at = to
		w.rowBytes = w.b.Bytes()/w.b.Rows() + 1
		if w.b.Bytes() >= batchBytes || w.b.Rows() >= batchRows {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush sends what is gathered.
func (w *chunkWriter) flush() error {
	if w.b.Rows() == 0 {
		return nil
	}
	return w.out.batch(w.b.Batch())
}

// endGrace is how long a call may go on after its end was asked for, to tell its own error.
const endGrace = 200 * time.Millisecond

// untilEnd runs f, which sends to a client. When ctx ends and f does not, it waits for a client that does not read; gRPC then lets
// it go only when the call's handler returns. So untilEnd returns without it, and Close waits for it.
func (s *Server) untilEnd(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	s.sending.Go(func() { done <- fault.Guard(f) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	t := time.NewTimer(endGrace)
	defer t.Stop()
	select {
	case err := <-done:
		return err
	case <-t.C:
		return context.Cause(ctx)
	}
}
