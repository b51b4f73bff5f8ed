package server

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"go.uber.org/zap"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/profile"
)

// StatementLog says which statements the log has a line of.
type StatementLog struct {
	// All is a line of every statement; otherwise of those that take at least Slow (0: none).
	All  bool
	Slow time.Duration
	// Text puts the text of the statement into the line, which may hold values that are nobody's business.
	Text bool
}

// maxLoggedText bounds a statement in a log.
const maxLoggedText = 4000

// sent counts what a stream sends.
type sent struct {
	flight.FlightService_DoGetServer
	bytes atomic.Int64
}

// Send implements the stream.
func (c *sent) Send(d *flight.FlightData) error {
	c.bytes.Add(int64(len(d.GetDataHeader()) + len(d.GetDataBody())))
	return c.FlightService_DoGetServer.Send(d)
}

// measure is what is known of a command that runs: for logs, for its limits, and for those who ask how far it is.
type measure struct {
	begun   time.Time
	waited  atomic.Int64 // nanoseconds in the queue
	rows    atomic.Int64
	sent    *sent
	profile atomic.Pointer[profile.Query] // of the run of the last bound row
	before  atomic.Int64                  // bytes that earlier runs read
	records atomic.Int64                  // rows that the statement's tables have
}

// scanned counts the bytes that were read from files, or unpacked from what caches hold of them.
func (m *measure) scanned() int64 {
	total := m.before.Load()
	if q := m.profile.Load(); q != nil {
		for _, s := range q.Scans() {
			total += max(s.BytesRead.Load(), s.BytesDecompressed.Load())
		}
	}
	return total
}

// total is how many rows the tables have of which the statement reads.
func (m *measure) total() float64 { return float64(m.records.Load()) }

// run begins the run of another bound row.
func (m *measure) run(q *profile.Query) {
	m.before.Store(m.scanned())
	m.profile.Store(q)
}

// account writes the lines about a command that has ended.
func (s *Server) account(ctx context.Context, c command, m *measure, err error) {
	took := time.Since(m.begun)
	st, statement := c.(*statement)
	logged := statement && (s.opt.Statements.All || s.opt.Statements.Slow > 0 && took >= s.opt.Statements.Slow)
	if !logged && s.opt.Audit == nil {
		return
	}
	fields := []zap.Field{
		zap.String("call", callID(ctx)), zap.String("principal", callerOf(ctx).principal), zap.String("peer", peerAddress(ctx)),
		zap.Duration("took", took), zap.Duration("waited", time.Duration(m.waited.Load())),
		zap.Int64("rows", m.rows.Load()), zap.Int64("bytes", m.sent.bytes.Load()), zap.Int64("scanned", m.scanned()), zap.String("code", codeName(err)),
	}
	if err != nil {
		fields = append(fields, zap.String("error", clip(err.Error(), maxMessageBytes)))
	}
	text := zap.Skip()
	what := "metadata"
	if statement {
		what = "statement"
		fields = append(fields, zap.String("statement", st.h.ID))
		text = zap.String("text", clip(st.h.SQL, maxLoggedText))
		if st.prepared != nil {
			fields = append(fields, zap.Strings("tables", slices.Sorted(maps.Keys(st.prepared.Pinned))))
		}
	} else {
		fields = append(fields, zap.String("command", strings.TrimPrefix(nameOf(c), "*server.")))
	}
	if s.opt.Audit != nil {
		s.opt.Audit.Info(what, append(fields[:len(fields):len(fields)], text)...)
	}
	if !logged {
		return
	}
	if s.opt.Statements.Text {
		fields = append(fields, text)
	}
	if s.opt.Statements.Slow > 0 && took >= s.opt.Statements.Slow {
		s.opt.Log.Warn("slow statement", fields...)
		return
	}
	s.opt.Log.Info("statement", fields...)
}

// auditLogin notes who was not let in.
func (s *Server) auditLogin(ctx context.Context, err error) {
	if s.opt.Audit != nil {
		s.opt.Audit.Info("refused", zap.String("call", callID(ctx)), zap.String("peer", peerAddress(ctx)), zap.String("code", codeName(err)), zap.String("error", err.Error()))
	}
}

// ResultLimits bound what one statement gives and reads; 0 is no limit.
type ResultLimits struct{ Rows, Bytes, Scan int64 }

// over tells which limit a statement has passed.
func (l ResultLimits) over(rows, bytes, scanned int64) error {
	for _, x := range []struct {
		have, limit int64
		what, name  string
	}{
		{rows, l.Rows, "rows of result", "limits.query.rows"},
		{bytes, l.Bytes, "bytes of result", "limits.query.result"},
		{scanned, l.Scan, "bytes of files", "limits.query.scan"},
	} {
		if x.limit > 0 && x.have > x.limit {
			return fault.WithID(fault.Exhausted, "EXCEEDED_QUERY_LIMIT", "the statement has more than %d %s, as %s allows; narrow it, or raise the limit", x.limit, x.what, x.name)
		}
	}
	return nil
}

// watchPeriod is how often a running statement is looked at.
const watchPeriod = 20 * time.Millisecond

// watch looks at a running statement until ctx ends: it is ended when it reads more than it may, and demoted when it reads more than a
// lookup does.
func (s *Server) watch(ctx context.Context, m *measure, p *place, end context.CancelCauseFunc) {
	t := time.NewTicker(watchPeriod)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		n := m.scanned()
		if n > lookupBytes {
			p.demote()
		}
		if err := s.opt.Results.over(0, 0, n); err != nil {
			end(err)
			return
		}
	}
}
