package scanner

import (
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/vector"
)

// metric is a column of readable_metrics: a primitive of the table's schema, whatever it stands in.
type metric struct {
	id   int
	name string // of the column with those around it, dotted
	typ  vector.Type
	raw  iceberg.Type
}

// metrics lists the columns of readable_metrics by name, as Iceberg Java has them.
func metrics(s *iceberg.Schema) ([]metric, error) {
	var out []metric
	var walk func(prefix string, f iceberg.NestedField) error
	walk = func(prefix string, f iceberg.NestedField) error {
		name := prefix + f.Name
		if kids := kidFields(f.Type); kids != nil {
			for _, k := range kids {
				if err := walk(name+".", k); err != nil {
					return err
				}
			}
			return nil
		}
		t, err := catalog.TypeOf(f.Type)
		if err != nil {
			return err
		}
		if _, ok := f.Type.(iceberg.PrimitiveType); ok && t.Kind != vector.Variant {
			out = append(out, metric{f.ID, name, t, f.Type})
		}
		return nil
	}
	for _, f := range s.Fields() {
		if err := walk("", f); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// metricsType is the type of readable_metrics.
func metricsType(ms []metric) vector.Type {
	var fields []vector.Field
	for _, m := range ms {
		fields = append(fields, nullable(m.name, vector.RowOf(nullable("column_size", tLong), nullable("value_count", tLong),
			nullable("null_value_count", tLong), nullable("nan_value_count", tLong), nullable("lower_bound", m.typ), nullable("upper_bound", m.typ))))
	}
	return vector.RowOf(fields...)
}

// metricsValue gives readable_metrics of an entry.
func metricsValue(ms []metric, m *manifest.Manifest, i int, sizes []vector.Pair) vector.Value {
	row := make([]vector.Value, len(ms))
	for k, c := range ms {
		var size, values, nulls, nans, lower, upper vector.Value
		for _, p := range sizes {
			if int(p.Key.(int32)) == c.id {
				size = p.Value
			}
		}
		if st := m.Column(c.id); st != nil {
			values, nulls, nans = unlessNegative(st.Values.At(i)), unlessNegative(st.Nulls.At(i)), unlessNegative(st.NaNs.At(i))
			if b, ok := st.Lower.At(i); ok {
				lower = c.bound(b)
			}
			if b, ok := st.Upper.At(i); ok {
				upper = c.bound(b)
			}
		}
		row[k] = []vector.Value{size, values, nulls, nans, lower, upper}
	}
	return row
}

// bound decodes a lower or upper bound; nil when it is none of the column's type.
func (c *metric) bound(b []byte) vector.Value {
	l, err := iceberg.LiteralFromBytes(c.raw, b)
	if err != nil {
		return nil
	}
	switch x := l.Any().(type) {
	case bool, int32, int64, float32, float64:
		return x
	case string:
		return x
	case []byte:
		return string(x)
	case uuid.UUID:
		return string(x[:])
	case iceberg.Date:
		return int32(x)
	case iceberg.Time:
		return int64(x)
	case iceberg.Timestamp:
		return int64(x)
	case iceberg.TimestampNano:
		return int64(x)
	case iceberg.Decimal:
		v, _ := decimalTo(x.Val, vector.DecimalOf(38, x.Scale), c.typ)
		return v
	}
	return nil
}

// sizesOf reads the column sizes of a manifest's entries.
func (in *inspector) sizesOf(f *manifest.File) ([][]vector.Pair, error) {
	key, encrypted, err := in.sc.keyOf(f.KeyMetadata)
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "manifest %s", f.Path)
	}
	return manifest.ReadColumnSizes(in.ctx, in.sc.storeOf(key, encrypted), in.sc.mapPath(f.Path), f.Length)
}
