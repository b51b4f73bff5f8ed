package avro

import (
	"encoding/hex"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/variant"
	"github.com/google/uuid"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// union reads a value of a union of several types as a variant. The branch of null is SQL NULL; nulls further down are
// variant nulls. Iceberg tables hold no such unions, lone Avro files do.
func (r *Reader) union(o *op, b *bufs) error {
	branch, err := r.branch(o.node)
	if err != nil {
		return err
	}
	if branch.Kind == Null {
		o.col.appendNull()
		return nil
	}
	var m variant.Builder
	m.SetAllowDuplicates(true)
	if err := r.datum(branch, &m); err != nil {
		return err
	}
	x, err := m.Build()
	if err != nil {
		return fault.New(fault.Corrupt, "a union's value makes no variant: %v", err)
	}
	for i, part := range [][]byte{x.Metadata().Bytes(), x.Bytes()} {
		k := o.col.kids[i]
		k.v.Views = append(k.v.Views, b.store(part))
		k.ok()
	}
	o.col.ok()
	return nil
}

func (r *Reader) branch(n *Node) (*Node, error) {
	i, err := r.d.long()
	if err != nil {
		return nil, err
	}
	if i < 0 || i >= int64(len(n.Children)) {
		return nil, fault.New(fault.Corrupt, "union branch %d does not exist", i)
	}
	return n.Children[i], nil
}

// nullable reads a value that a union with null may stand around.
func (r *Reader) nullable(n *Node, m *variant.Builder) error {
	if n.null >= 0 {
		i, err := r.d.long()
		if err != nil {
			return err
		}
		if i < 0 || i > 1 {
			return fault.New(fault.Corrupt, "union branch %d does not exist", i)
		}
		if int(i) == n.null {
			return m.AppendNull()
		}
	}
	return r.datum(n, m)
}

// datum reads one value into a variant; the union with null around it has been read.
func (r *Reader) datum(n *Node, m *variant.Builder) error {
	d := &r.d
	switch n.Kind {
	case Null:
		return m.AppendNull()
	case Boolean:
		p, err := d.take(1)
		if err != nil {
			return err
		}
		return m.AppendBool(p[0] == 1)
	case Int, Long:
		x, err := d.long()
		if err != nil {
			return err
		}
		return appendInteger(n, x, m)
	case Float:
		x, err := d.float()
		if err != nil {
			return err
		}
		return m.AppendFloat32(x)
	case Double:
		p, err := d.take(8)
		if err != nil {
			return err
		}
		return m.AppendFloat64(math.Float64frombits(le64(p)))
	case Bytes, String, Fixed:
		var p []byte
		var err error
		if n.Kind == Fixed {
			p, err = d.take(n.Size)
		} else {
			p, err = d.bytes()
		}
		if err != nil {
			return err
		}
		return appendBytes(n, p, m)
	case Enum:
		x, err := d.long()
		if err != nil {
			return err
		}
		if x < 0 || x >= int64(len(n.Symbols)) {
			return fault.New(fault.Corrupt, "enum symbol %d does not exist", x)
		}
		return m.AppendString(n.Symbols[x])
	case Union:
		b, err := r.branch(n)
		if err != nil {
			return err
		}
		return r.datum(b, m)
	case Record:
		start, fields := m.Offset(), []variant.FieldEntry{}
		for _, c := range n.Children {
			fields = append(fields, m.NextField(start, c.Name))
			if err := r.nullable(c, m); err != nil {
				return err
			}
		}
		return m.FinishObject(start, fields)
	}
	return r.items(n, m)
}

// items reads an array, or a map whose keys are text; another map becomes an array of objects of key and value.
func (r *Reader) items(n *Node, m *variant.Builder) error {
	start, offsets, fields := m.Offset(), []int{}, []variant.FieldEntry{}
	var least int64
	for _, c := range n.Children {
		least += c.min
	}
	object := n.Kind == Map && n.Children[0].Kind == String && n.Children[0].null < 0 && !n.keyLast
	for {
		count, err := r.d.blockCount(least)
		if err != nil {
			return err
		}
		if count == 0 {
			break
		}
		for range count {
			if object {
				key, err := r.d.bytes()
				if err != nil {
					return err
				}
				fields = append(fields, m.NextField(start, string(key)))
				if err := r.nullable(n.Children[1], m); err != nil {
					return err
				}
				continue
			}
			offsets = append(offsets, m.NextElement(start))
			if n.Kind == Array {
				err = r.nullable(n.Children[0], m)
			} else {
				err = r.entry(n, m)
			}
			if err != nil {
				return err
			}
		}
	}
	if object {
		return m.FinishObject(start, fields)
	}
	return m.FinishArray(start, offsets)
}

func (r *Reader) entry(n *Node, m *variant.Builder) error {
	start, fields := m.Offset(), []variant.FieldEntry{}
	order := []int{0, 1}
	if n.keyLast {
		order = []int{1, 0}
	}
	for _, i := range order {
		fields = append(fields, m.NextField(start, [...]string{"key", "value"}[i]))
		if err := r.nullable(n.Children[i], m); err != nil {
			return err
		}
	}
	return m.FinishObject(start, fields)
}

func appendInteger(n *Node, x int64, m *variant.Builder) error {
	const millis = 1000
	scaled := func(unit int64) (int64, error) {
		if x*unit/unit != x {
			return 0, fault.New(fault.Corrupt, "value %d is out of range as %s", x, n.Logical)
		}
		return x * unit, nil
	}
	local := n.Local || strings.HasPrefix(n.Logical, "local-")
	switch n.Logical {
	case "date":
		return m.AppendDate(arrow.Date32(x))
	case "time-millis", "time-micros":
		if n.Logical == "time-millis" {
			var err error
			if x, err = scaled(millis); err != nil {
				return err
			}
		}
		return m.AppendTimeMicro(arrow.Time64(x))
	case "timestamp-millis", "local-timestamp-millis":
		us, err := scaled(millis)
		if err != nil {
			return err
		}
		return m.AppendTimestamp(arrow.Timestamp(us), true, !local)
	case "timestamp-micros", "local-timestamp-micros":
		return m.AppendTimestamp(arrow.Timestamp(x), true, !local)
	case "timestamp-nanos", "local-timestamp-nanos":
		return m.AppendTimestamp(arrow.Timestamp(x), false, !local)
	}
	return m.AppendInt(x)
}

func appendBytes(n *Node, p []byte, m *variant.Builder) error {
	switch {
	case n.Logical == "decimal":
		x, ok := Int128(p)
		if !ok || n.Scale < 0 || n.Scale > 38 {
			return fault.New(fault.Corrupt, "a decimal does not fit decimal(38,%d)", n.Scale)
		}
		return m.AppendDecimal16(uint8(n.Scale), x)
	case n.Logical == "uuid" && n.Kind == String:
		u, err := hex.DecodeString(strings.ReplaceAll(string(p), "-", ""))
		if err != nil || len(u) != len(uuid.UUID{}) {
			return fault.New(fault.Corrupt, "a UUID is written %.60q", p)
		}
		return m.AppendUUID(uuid.UUID(u))
	case n.Logical == "uuid" && len(p) == len(uuid.UUID{}):
		return m.AppendUUID(uuid.UUID(p))
	case n.Kind == String:
		return m.AppendString(string(p))
	}
	return m.AppendBinary(p)
}

// compileUnion makes the columns of a variant that a union is read into.
func compileUnion(o *op) {
	o.code = opUnion
	for _, f := range vector.Of(vector.Variant).Fields {
		o.col.kids = append(o.col.kids, newColumn(f.Type))
	}
}
