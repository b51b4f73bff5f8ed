package query

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

var allocator = memory.NewGoAllocator()

// Format is a form of output.
type Format string

// The forms of output.
const (
	Table Format = "table"
	CSV   Format = "csv"
	JSON  Format = "json" // one object a line
	Arrow Format = "arrow"
)

// tableRows is how many rows a table shows; the rest are counted. The other forms have no limit.
const tableRows = 1000

// writer takes the batches of one answer.
type writer interface {
	schema(s *arrow.Schema) error
	batch(b arrow.RecordBatch) error
	close() error
}

func newWriter(f Format, out io.Writer) (writer, error) {
	switch f {
	case Table:
		return &tableWriter{out: out, t: table.NewWriter()}, nil
	case CSV:
		return &csvWriter{w: csv.NewWriter(out)}, nil
	case JSON:
		return &jsonWriter{out: bufio.NewWriterSize(out, 64<<10)}, nil
	case Arrow:
		return &arrowWriter{out: out}, nil
	}
	return nil, fault.New(fault.Invalid, "format %q is not known; use table, csv, json or arrow", f)
}

// Run runs a statement and writes its answer.
func (c *Client) Run(ctx context.Context, sql string, f Format, out io.Writer) error {
	w, err := newWriter(f, out)
	if err != nil {
		return err
	}
	bar := newBar()
	defer bar.stop()
	err = c.Query(ctx, sql, func(s *arrow.Schema, b arrow.RecordBatch) error {
		if b == nil {
			return w.schema(s)
		}
		bar.add(b.NumRows())
		return w.batch(b)
	})
	bar.stop()
	if err != nil {
		return err
	}
	return w.close()
}

// barAfter is how long an answer may take before a bar shows that it is on its way.
const barAfter = time.Second

// bar shows on a terminal how many rows have come.
type bar struct {
	w       progress.Writer
	tracker *progress.Tracker
	start   time.Time
	timer   *time.Timer
}

func newBar() *bar {
	b := &bar{start: time.Now(), tracker: &progress.Tracker{Message: "rows", RemoveOnCompletion: true}}
	if !term.IsTerminal(int(os.Stderr.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
		return b
	}
	b.w = progress.NewWriter()
	b.w.SetOutputWriter(os.Stderr)
	b.w.SetAutoStop(false)
	b.w.Style().Visibility.Percentage = false // nobody knows how many will come
	b.w.AppendTracker(b.tracker)
	b.timer = time.AfterFunc(barAfter, b.w.Render)
	return b
}

func (b *bar) add(rows int64) { b.tracker.Increment(rows) }

func (b *bar) stop() {
	if b.w == nil {
		return
	}
	b.tracker.MarkAsDone()
	if !b.timer.Stop() {
		b.w.Stop()
		for b.w.IsRenderInProgress() {
			time.Sleep(time.Millisecond)
		}
	}
	b.w = nil
}

type tableWriter struct {
	out   io.Writer
	t     table.Writer
	shown int
	rows  int64
}

func (w *tableWriter) schema(s *arrow.Schema) error {
	w.t.SetOutputMirror(w.out)
	w.t.SetStyle(table.StyleLight)
	w.t.Style().Format.Header = text.FormatDefault
	header := make(table.Row, s.NumFields())
	align := make([]table.ColumnConfig, s.NumFields())
	for i, f := range s.Fields() {
		header[i] = f.Name
		align[i] = table.ColumnConfig{Number: i + 1}
		if arrow.IsInteger(f.Type.ID()) || arrow.IsFloating(f.Type.ID()) || arrow.IsDecimal(f.Type.ID()) {
			align[i].Align, align[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	w.t.AppendHeader(header)
	w.t.SetColumnConfigs(align)
	return nil
}

func (w *tableWriter) batch(b arrow.RecordBatch) error {
	w.rows += b.NumRows()
	for i := 0; i < int(b.NumRows()) && w.shown < tableRows; i++ {
		row := make(table.Row, b.NumCols())
		for j, c := range b.Columns() {
			row[j] = Text(c, i)
		}
		w.t.AppendRow(row)
		w.shown++
	}
	return nil
}

func (w *tableWriter) close() error {
	w.t.Render()
	more := ""
	if int64(w.shown) < w.rows {
		more = fmt.Sprintf(", the first %d shown; csv, json and arrow give all", w.shown)
	}
	noun := "rows"
	if w.rows == 1 {
		noun = "row"
	}
	_, err := fmt.Fprintf(w.out, "%d %s%s\n", w.rows, noun, more)
	return err
}

type csvWriter struct {
	w   *csv.Writer
	row []string
}

func (w *csvWriter) schema(s *arrow.Schema) error {
	w.row = make([]string, s.NumFields())
	for i, f := range s.Fields() {
		w.row[i] = f.Name
	}
	return w.w.Write(w.row)
}

func (w *csvWriter) batch(b arrow.RecordBatch) error {
	for i := range int(b.NumRows()) {
		for j, c := range b.Columns() {
			w.row[j] = ""
			if !c.IsNull(i) {
				w.row[j] = string(appendText(nil, c, i))
			}
		}
		if err := w.w.Write(w.row); err != nil {
			return err
		}
	}
	return nil
}

func (w *csvWriter) close() error {
	w.w.Flush()
	return w.w.Error()
}

// jsonWriter writes one object a row, whose members have the order of the columns.
type jsonWriter struct {
	out  *bufio.Writer
	line []byte
}

func (w *jsonWriter) schema(*arrow.Schema) error { return nil }

func (w *jsonWriter) batch(b arrow.RecordBatch) error {
	for i := range int(b.NumRows()) {
		w.line = append(w.line[:0], '{')
		for j, c := range b.Columns() {
			if j > 0 {
				w.line = append(w.line, ',')
			}
			w.line = append(appendQuoted(w.line, b.ColumnName(j)), ':')
			w.line = appendJSON(w.line, c, i, vector.IsJSON(b.Schema().Field(j)))
		}
		if _, err := w.out.Write(append(w.line, '}', '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (w *jsonWriter) close() error { return w.out.Flush() }

// arrowWriter writes an Arrow IPC stream.
type arrowWriter struct {
	out io.Writer
	w   *ipc.Writer
}

func (w *arrowWriter) schema(s *arrow.Schema) error {
	w.w = ipc.NewWriter(w.out, ipc.WithSchema(s))
	return nil
}

func (w *arrowWriter) batch(b arrow.RecordBatch) error { return w.w.Write(b) }
func (w *arrowWriter) close() error                    { return w.w.Close() }
