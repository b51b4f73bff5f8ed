package catalog

import (
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// PartitionType is the struct of all partition fields that a table ever had, by field id, which is the type of the metadata
// column _partition (spec: Metadata Columns). A field whose source column or transform is not known is text. nil when the
// table was never partitioned.
func PartitionType(m table.Metadata) *iceberg.StructType {
	out := &iceberg.StructType{}
	void := map[int]bool{}
	for _, spec := range m.PartitionSpecs() {
		for _, f := range spec.Fields() {
			_, isVoid := f.Transform.(iceberg.VoidTransform)
			field := iceberg.NestedField{ID: f.FieldID, Name: f.Name, Type: partitionFieldType(m, f)}
			at := slices.IndexFunc(out.FieldList, func(g iceberg.NestedField) bool { return g.ID == f.FieldID })
			switch {
			case at < 0:
				out.FieldList = append(out.FieldList, field)
				void[f.FieldID] = isVoid
			case void[f.FieldID] && !isVoid:
				out.FieldList[at], void[f.FieldID] = field, false
			}
		}
	}
	if len(out.FieldList) == 0 {
		return nil
	}
	slices.SortFunc(out.FieldList, func(a, b iceberg.NestedField) int { return a.ID - b.ID })
	return out
}

func partitionFieldType(m table.Metadata, f iceberg.PartitionField) iceberg.Type {
	switch f.Transform.(type) {
	case iceberg.BucketTransform, iceberg.YearTransform, iceberg.MonthTransform, iceberg.HourTransform:
		return iceberg.PrimitiveTypes.Int32
	case iceberg.DayTransform:
		return iceberg.PrimitiveTypes.Date
	}
	if len(f.SourceIDs) == 1 {
		for _, s := range append([]*iceberg.Schema{m.CurrentSchema()}, m.Schemas()...) {
			if col, ok := s.FindFieldByID(f.SourceIDs[0]); ok {
				return col.Type
			}
		}
	}
	return iceberg.PrimitiveTypes.String
}
