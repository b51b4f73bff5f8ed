package server

import (
	"context"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/exec"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// statement is a SQL statement as text, as a ticket or as a prepared handle: the three differ only in how much of
// the handle is filled.
type statement struct {
	s        *Server
	h        *handle
	blob     []byte // the sealed handle, when the client sent one
	prepared *plan.Prepared
	fields   []vector.Field
}

func (s *Server) newStatement(ctx context.Context, sql string, transaction []byte) (*statement, error) {
	if err := noTransaction(ctx, transaction); err != nil {
		return nil, err
	}
	return &statement{s: s, h: s.newHandle(ctx, sql)}, nil
}

func (s *Server) sealedStatement(ctx context.Context, blob []byte) (*statement, error) {
	h, err := s.openHandle(ctx, blob)
	if err != nil {
		return nil, err
	}
	return &statement{s: s, h: h, blob: blob}, nil
}

func (st *statement) environment(ctx context.Context) (*plan.Environment, error) {
	zone, err := time.LoadLocation(st.h.Session.Zone)
	if err != nil {
		return nil, fault.New(fault.Invalid, "time zone %q is not known", st.h.Session.Zone)
	}
	return &plan.Environment{
		Catalogs: visible{ctx, st.s}, Catalog: st.h.Session.Catalog, Schema: st.h.Session.Schema, User: st.h.Principal,
		Dialect: st.h.Session.Dialect, Zone: zone, Now: time.Now(), Snapshots: st.h.Pins, Session: st.h.Session.named(), MaxRecursion: st.h.Session.MaxRecursion,
		MetadataTable: st.s.metadataTable, Files: st.s.opt.Files, ParamTypes: st.boundTypes(),
	}, nil
}

// metadataTable reads the metadata tables that are made from manifests.
func (s *Server) metadataTable(ctx context.Context, t *catalog.Table, snap catalog.Snapshot, name string) ([]plan.Column, [][]vector.Value, error) {
	fields, rows, err := s.opt.Scanner.MetadataTable(ctx, t, snap, name)
	columns := make([]plan.Column, len(fields))
	for i, f := range fields {
		columns[i] = plan.Column{Name: f.Name, Type: f.Type, Nullable: f.Nullable}
	}
	return columns, rows, err
}

// plan binds the statement, once a call; what GetFlightInfo planned is reused by the DoGet of its ticket.
func (st *statement) plan(ctx context.Context) error {
	if st.prepared != nil {
		return nil
	}
	if st.blob != nil {
		if p, ok := st.s.planned.get(st.s.planKey(st.blob)); ok {
			st.keep(p)
			return nil
		}
	}
	env, err := st.environment(ctx)
	if err != nil {
		return err
	}
	p, err := plan.Build(ctx, st.h.SQL, env)
	if err != nil {
		return err
	}
	var deep []int
	for i, c := range p.Columns {
		if d := levels(c.Type); d > maxLevels {
			if st.s.opt.Files != nil { // whoever reads files in this process has no other way to ask
				deep = append(deep, i)
				continue
			}
			return fault.New(fault.Unsupported, "column %q is nested %d levels deep and Arrow clients read at most %d; select a part of it, or CAST(... AS json)", c.Name, d, maxLevels)
		}
	}
	if deep != nil {
		if p, err = p.WithJSON(deep); err != nil {
			return err
		}
	}
	st.keep(p)
	return nil
}

// maxLevels is how deep Arrow's own readers and writers follow nested types.
const maxLevels = 63

// levels counts the nested types of t around its deepest value, as Arrow nests them: a map is a list of structs.
func levels(t vector.Type) int {
	deepest := 0
	for _, f := range t.Fields {
		deepest = max(deepest, levels(f.Type))
	}
	switch t.Kind {
	case vector.Array, vector.Row:
		return deepest + 1
	case vector.Map:
		return deepest + 2
	case vector.Variant:
		return 1
	}
	return 0
}

func (st *statement) keep(p *plan.Prepared) {
	st.prepared = p
	if p.Setting != nil {
		// JDBC takes an answer without columns for an update, which this server refuses; so settings answer with one.
		st.fields = []vector.Field{{Name: "result", Type: vector.Of(vector.Varchar)}}
		return
	}
	st.fields = make([]vector.Field, len(p.Columns))
	for i, c := range p.Columns {
		st.fields[i] = vector.Field{Name: c.Name, Type: c.Type, Nullable: c.Nullable}
	}
}

func (st *statement) schema(ctx context.Context) (*arrow.Schema, error) {
	if err := st.plan(ctx); err != nil {
		return nil, err
	}
	return st.h.Session.wire().Schema(st.fields), nil
}

// ticket pins the planned snapshots, so that the rows are those of the plan whichever server streams them, and as
// often as the client asks.
func (st *statement) ticket(ctx context.Context) ([]byte, error) {
	if err := st.plan(ctx); err != nil {
		return nil, err
	}
	st.lastBound()
	st.h.ID = uuid.NewString() // of this run: cancelling it leaves later runs of a prepared statement alone
	st.h.Pins = st.prepared.Pinned
	blob, err := st.s.sealHandle(st.h)
	if err != nil {
		return nil, err
	}
	st.s.planned.add(st.s.planKey(blob), st.prepared)
	msg, err := anypb.New(&pb.TicketStatementQuery{StatementHandle: blob})
	if err != nil {
		return nil, err
	}
	return proto.Marshal(msg)
}

// rows runs the statement, once for each bound row of parameters, and streams what comes.
func (st *statement) rows(ctx context.Context, out *rowWriter) error {
	if err := st.plan(ctx); err != nil {
		return err
	}
	if set := st.prepared.Setting; set != nil {
		done, err := st.s.apply(ctx, callerOf(ctx).session, set)
		if err != nil {
			return err
		}
		return out.text(done)
	}
	bound, err := st.boundRows()
	if err != nil {
		return err
	}
	out.limits = st.s.opt.Results
	out.m.records.Store(records(st.prepared.Root))
	ctx, end, done, err := st.s.running.start(ctx, st.h.ID, out.m)
	if err != nil {
		return err
	}
	defer done()
	stop := context.AfterFunc(st.s.ctx, func() { end(context.Cause(st.s.ctx)) })
	defer stop()
	if st.s.opt.QueryTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, st.s.opt.QueryTime)
		defer cancel()
	}
	err = st.s.untilEnd(ctx, func() error { return st.run(ctx, end, bound, out) })
	if cause := context.Cause(ctx); err != nil && fault.KindOf(err) == fault.Canceled && cause != nil {
		return cause
	}
	return err
}

func (st *statement) run(ctx context.Context, end context.CancelCauseFunc, bound [][]vector.Value, out *rowWriter) error {
	p, err := st.begin(ctx, len(bound))
	if err != nil {
		return err
	}
	defer p.leave()
	out.m.waited.Store(int64(time.Since(out.m.begun)))
	watching, seen := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { st.s.watch(watching, out.m, p, end) })
	defer watch.Wait()
	defer seen()
	pool := st.s.gate.queries.Child("query "+st.h.ID+" (limits.query.memory)", st.s.opt.QueryMemory)
	// A batch being gathered and the copies that the wire makes of it.
	const wireBytes = 4 * batchBytes
	if err := pool.Reserve(wireBytes); err != nil {
		return err
	}
	defer pool.Release(wireBytes)
	w := newChunkWriter(out, st.h.Session.wire().NewBatcher(st.fields))
	for _, params := range bound {
		env, err := st.environment(ctx)
		if err != nil {
			return err
		}
		q := &exec.Query{
			Context: &expr.Context{
				Now: env.Now, Zone: env.Zone, Dialect: env.Dialect, Params: params,
				User: env.User, Catalog: env.Catalog, Schema: env.Schema,
			},
			Pool: pool, Scanner: st.s.opt.Scanner, Profile: profile.New(st.h.ID, st.h.SQL),
			// The ticket may be of a server that allows more.
			Workers: min(st.h.Session.Workers, st.s.opt.Workers), ChunkRows: min(st.h.Session.ChunkRows, st.s.opt.ChunkRows),
			Spill: st.s.opt.Spill,
		}
		out.m.run(q.Profile)
		if err := stream(ctx, st.prepared.Root, q, w); err != nil {
			return err
		}
	}
	return w.flush()
}

// begin takes the statement's place among those that run, and waits for it unless it is a lookup.
func (st *statement) begin(ctx context.Context, times int) (*place, error) {
	if times <= lookupsAtOnce && isLookup(st.prepared.Root) {
		return st.s.gate.look(st.h.Principal)
	}
	return st.s.gate.enter(ctx, st.h.Principal)
}

func stream(ctx context.Context, root plan.Node, q *exec.Query, w *chunkWriter) (err error) {
	res, err := exec.Run(ctx, root, q)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := res.Close(); err == nil {
			err = cerr
		}
	}()
	for {
		c, err := res.Next(ctx)
		if err != nil || c == nil {
			return err
		}
		if err := w.chunk(c); err != nil {
			return err
		}
	}
}
