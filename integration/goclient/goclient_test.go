// Package goclient runs the common list of cases through the two Go clients, arrow-go's Flight SQL client and its
// database/sql driver, against a server process that the test builds and starts.
//
// It holds tests only.
package goclient

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	_ "github.com/apache/arrow-go/v18/arrow/flight/flightsql/driver"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/skua-db/skua/demo"
	"github.com/skua-db/skua/integration/identity"
)

// address is where the server process listens, authority the file of who certifies it, secure the same for gRPC.
var (
	address, authority string
	secure             credentials.TransportCredentials
)

// login sends name and password with every call.
type login struct{}

func (login) RequireTransportSecurity() bool { return true }
func (login) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	pair := identity.User + ":" + identity.Password
	return map[string]string{"authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))}, nil
}

func options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithTransportCredentials(secure), grpc.WithPerRPCCredentials(login{})}
}

func TestMain(m *testing.M) {
	stop, err := startServer()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	if err := writeResults(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// startServer builds the binary, makes a small demo lakehouse and serves it on a free port.
func startServer() (stop func(), err error) {
	dir, err := os.MkdirTemp("", "skua-goclient")
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, "skua")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/flightsql")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building the server: %w", err)
	}
	if _, err := demo.Make(context.Background(), filepath.Join(dir, "lake"), 0.001); err != nil {
		return nil, err
	}
	if err := identity.Make(dir); err != nil {
		return nil, err
	}
	authority = filepath.Join(dir, identity.Authority)
	if secure, err = credentials.NewClientTLSFromFile(authority, ""); err != nil {
		return nil, err
	}
	server := exec.Command(binary, "serve", "--config", filepath.Join(dir, identity.Config), "--listen", "127.0.0.1:0", "--catalog", "demo="+filepath.Join(dir, "lake"))
	log, err := server.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(log)
	for address == "" && lines.Scan() {
		var entry struct {
			Msg     string `json:"msg"`
			Address string `json:"address"`
		}
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Address != "" {
			address = entry.Address
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
		}
	}()
	stop = func() {
		_ = server.Process.Signal(os.Interrupt)
		<-drained
		_ = server.Wait()
		_ = os.RemoveAll(dir)
	}
	if address == "" {
		stop()
		return nil, fmt.Errorf("the server did not start")
	}
	return stop, nil
}

type testCase struct {
	Name    string
	SQL     string
	Params  []map[string]any
	Columns []string
	Rows    [][]*string
	Error   string
	Hint    string
	Do      string // what is done, of cases that are no statement
}

func loadCases(t *testing.T) []testCase {
	t.Helper()
	raw, err := os.ReadFile("../cases.json")
	require.NoError(t, err)
	var all, cases []testCase
	require.NoError(t, json.Unmarshal(raw, &all))
	for _, c := range all {
		if c.Do == "" {
			cases = append(cases, c)
		}
	}
	require.NotEmpty(t, cases)
	return cases
}

func (c *testCase) parameters() []any {
	var out []any
	for _, p := range c.Params {
		for kind, v := range p {
			if kind == "long" {
				v = int64(v.(float64))
			}
			out = append(out, v)
		}
	}
	return out
}

func (c *testCase) checkError(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.ErrorContains(t, err, c.Error)
	require.ErrorContains(t, err, c.Hint)
}

func (c *testCase) want() [][]string {
	out := make([][]string, len(c.Rows))
	for i, r := range c.Rows {
		for _, v := range r {
			if v == nil {
				out[i] = append(out[i], "NULL")
			} else {
				out[i] = append(out[i], *v)
			}
		}
	}
	return out
}

func text(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "NULL"
	}
	switch a := a.(type) {
	case *array.Timestamp:
		return time.UnixMicro(int64(a.Value(i))).UTC().Format("2006-01-02T15:04:05.000000")
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	}
	return a.ValueStr(i)
}

func TestArrowClient(t *testing.T) {
	ctx := context.Background()
	cl, err := flightsql.NewClientCtx(ctx, address, nil, nil, options()...)
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	for _, c := range loadCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			noted(t, arrowClient, c.Name)
			columns, rows, err := runArrow(ctx, cl, &c)
			if c.Error != "" {
				c.checkError(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.Columns, columns)
			require.Equal(t, c.want(), rows)
		})
	}
}

func runArrow(ctx context.Context, cl *flightsql.Client, c *testCase) (columns []string, rows [][]string, err error) {
	info, release, err := execute(ctx, cl, c)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	rows = [][]string{}
	for _, e := range info.Endpoint {
		r, err := cl.DoGet(ctx, e.Ticket)
		if err != nil {
			return nil, nil, err
		}
		for _, f := range r.Schema().Fields() {
			columns = append(columns, f.Name)
		}
		for r.Next() {
			rec := r.RecordBatch()
			for i := range int(rec.NumRows()) {
				row := make([]string, rec.NumCols())
				for j, col := range rec.Columns() {
					row[j] = text(col, i)
				}
				rows = append(rows, row)
			}
		}
		err = r.Err()
		r.Release()
		if err != nil {
			return nil, nil, err
		}
	}
	return columns, rows, nil
}

func execute(ctx context.Context, cl *flightsql.Client, c *testCase) (info *flight.FlightInfo, release func(), err error) {
	if len(c.Params) == 0 {
		info, err = cl.Execute(ctx, c.SQL)
		return info, func() {}, err
	}
	st, err := cl.Prepare(ctx, c.SQL)
	if err != nil {
		return nil, nil, err
	}
	var fields []arrow.Field
	for i, p := range c.parameters() {
		dt := arrow.DataType(arrow.BinaryTypes.String)
		if _, ok := p.(int64); ok {
			dt = arrow.PrimitiveTypes.Int64
		}
		fields = append(fields, arrow.Field{Name: fmt.Sprint(i), Type: dt})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for i, p := range c.parameters() {
		if err := b.Field(i).AppendValueFromString(fmt.Sprint(p)); err != nil {
			return nil, nil, err
		}
	}
	st.SetParameters(b.NewRecordBatch())
	info, err = st.Execute(ctx)
	return info, func() { _ = st.Close(ctx) }, err
}

// dsn is the address for database/sql. The driver has a server's certificate checked by the authorities of the system only, or not at all.
func dsn(password string) string {
	u := url.URL{Scheme: "flightsql", Host: address, User: url.UserPassword(identity.User, password), RawQuery: "timeout=60s&tls=skip-verify"}
	return u.String()
}

func TestDatabaseSQL(t *testing.T) {
	db, err := sql.Open("flightsql", dsn(identity.Password))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for _, c := range loadCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			noted(t, databaseSQL, c.Name)
			rows, err := db.Query(c.SQL, c.parameters()...)
			if err == nil {
				defer func() { require.NoError(t, rows.Close()) }()
			}
			if c.Error != "" {
				for err == nil && rows.Next() {
				}
				if err == nil {
					err = rows.Err()
				}
				c.checkError(t, err)
				return
			}
			require.NoError(t, err)
			columns, err := rows.Columns()
			require.NoError(t, err)
			require.Equal(t, c.Columns, columns)
			n := 0
			for rows.Next() {
				n++
			}
			require.NoError(t, rows.Err())
			require.Equal(t, len(c.Rows), n)
		})
	}
}

func TestSessionsAndMetadata(t *testing.T) {
	ctx := context.Background()
	cl, err := flightsql.NewClientCtx(ctx, address, nil, nil, options()...)
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()

	option, err := flight.NewSessionOptionValue("tpch")
	require.NoError(t, err)
	res, err := cl.SetSessionOptions(ctx, &flight.SetSessionOptionsRequest{SessionOptions: map[string]*flight.SessionOptionValue{
		"schema": &option, "nonsense": &option,
	}})
	require.NoError(t, err)
	require.Len(t, res.Errors, 1)
	require.Equal(t, flight.SetSessionOptionsResultErrorInvalidName, res.Errors["nonsense"].Value)
	got, err := cl.GetSessionOptions(ctx, &flight.GetSessionOptionsRequest{})
	require.NoError(t, err)
	require.Equal(t, "tpch", got.SessionOptions["schema"].GetStringValue())
	_, rows, err := runArrow(ctx, cl, &testCase{SQL: "SELECT count(*) FROM nation"})
	require.NoError(t, err)
	require.Equal(t, [][]string{{"25"}}, rows)
	_, err = cl.CloseSession(ctx, &flight.CloseSessionRequest{})
	require.NoError(t, err)
	_, _, err = runArrow(ctx, cl, &testCase{SQL: "SELECT count(*) FROM nation"})
	require.Error(t, err)

	info, err := cl.GetXdbcTypeInfo(ctx, nil)
	require.NoError(t, err)
	require.NotEmpty(t, info.Endpoint)
	schema, err := cl.GetExecuteSchema(ctx, "SELECT n_name FROM tpch.nation")
	require.NoError(t, err)
	described, err := flight.DeserializeSchema(schema.Schema, memory.DefaultAllocator)
	require.NoError(t, err)
	require.Equal(t, "n_name", described.Field(0).Name)

	for _, refused := range []func() error{
		func() error { _, err := cl.BeginTransaction(ctx); return err },
		func() error { _, err := cl.ExecuteUpdate(ctx, "DELETE FROM tpch.nation"); return err },
	} {
		err := refused()
		require.Error(t, err)
		require.Contains(t, strings.ToLower(err.Error()), "read-only")
	}
}

func TestCancelFlightInfo(t *testing.T) {
	ctx := context.Background()
	cl, err := flightsql.NewClientCtx(ctx, address, nil, nil, options()...)
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	info, err := cl.Execute(ctx, "SELECT a.l_orderkey FROM tpch.lineitem a, tpch.lineitem b, tpch.lineitem c")
	require.NoError(t, err)
	r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	res, err := cl.CancelFlightInfo(ctx, &flight.CancelFlightInfoRequest{Info: info})
	require.NoError(t, err)
	require.Equal(t, flight.CancelStatusCancelled, res.Status)
	for r.Next() {
	}
	require.ErrorContains(t, r.Err(), "cancelled")
	again, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	if err == nil {
		again.Next()
		err = again.Err()
		again.Release()
	}
	require.ErrorContains(t, err, "cancelled", "a cancelled statement does not start again")
}
