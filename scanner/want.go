package scanner

import (
	"bytes"
	"encoding/json"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// Field ids of the metadata columns (spec: Reserved Field IDs).
const (
	idFile      = 2147483646
	idPos       = 2147483645
	idDeleted   = 2147483644
	idSpecID    = 2147483643
	idPartition = 2147483642
	idRowID     = 2147483540
	idLastSeq   = 2147483539

	idDeletePath = 2147483546
	idDeletePos  = 2147483545
)

// want is a wanted field with what a file that lacks it gives instead.
type want struct {
	id       int
	name     string
	typ      vector.Type
	required bool
	// def is the initial default; nil is null or none.
	def  vector.Value
	kids []*want
	// parts says what of a variant is wanted; nil is all.
	parts *vector.VariantParts
}

// wantOf makes the tree of a field of the table's schema. defaults has the initial defaults as the metadata writes them;
// a field that it lacks takes that of the model.
func wantOf(f iceberg.NestedField, defaults map[int]json.RawMessage) (*want, error) {
	t, err := catalog.TypeOf(f.Type)
	if err != nil {
		return nil, err
	}
	w := &want{id: f.ID, name: f.Name, typ: t, required: f.Required}
	var kids []iceberg.NestedField
	switch n := f.Type.(type) {
	case *iceberg.StructType:
		kids = n.FieldList
	case *iceberg.ListType:
		kids = []iceberg.NestedField{n.ElementField()}
	case *iceberg.MapType:
		kids = []iceberg.NestedField{n.KeyField(), n.ValueField()}
	}
	for _, k := range kids {
		kw, err := wantOf(k, defaults)
		if err != nil {
			return nil, err
		}
		w.kids = append(w.kids, kw)
	}
	written := f.InitialDefault
	if raw, ok := defaults[f.ID]; ok {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&written); err != nil {
			return nil, fault.New(fault.Corrupt, "initial default of column %s: %v", f.Name, err)
		}
	}
	if w.def, err = jsonValue(w, written); err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "initial default of column %s", f.Name)
	}
	return w, nil
}

// absent is the value of every row when a file has no such field.
func (w *want) absent() (vector.Value, error) {
	if w.def == nil && w.required {
		return nil, fault.New(fault.Corrupt, "required column %s is missing", w.name)
	}
	return w.def, nil
}
