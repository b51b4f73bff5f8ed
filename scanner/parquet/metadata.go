package parquet

import (
	"cmp"
	"math"
	"strings"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/parquet/thrift"
	"github.com/skua-db/skua/storage"
)

// parseFileMetadata decodes a FileMetaData struct into f and checks it against itself and the file's size.
func parseFileMetadata(body []byte, f *Footer) error {
	var (
		r       = thrift.NewReader(body)
		elems   []schemaElement
		orders  []columnOrder
		cipher  bool
		hasRows bool
	)
	r.Struct(func(id int16, t thrift.Type) {
		switch id {
		case 2:
			r.Each(t, func(i, n int, t thrift.Type) {
				if i == 0 {
					if n > maxSchemaNodes {
						r.Fail(fault.New(fault.Corrupt, "schema has %d elements", n))
						return
					}
					elems = make([]schemaElement, 0, min(n, 1024))
				}
				elems = append(elems, schemaElement{})
				parseSchemaElement(r, t, &elems[len(elems)-1])
			})
		case 3:
			f.NumRows, hasRows = r.Int(t), true
		case 4:
			r.Each(t, func(i, n int, t thrift.Type) {
				g := &RowGroup{Offset: -1, ordinal: -1}
				parseRowGroup(r, g, len(elems))
				if len(g.Columns) == 0 && len(elems) > 1 {
					r.Fail(fault.New(fault.Corrupt, "row group %d has no columns", i))
				}
				f.RowGroups = append(f.RowGroups, g)
			})
		case 5:
			r.Each(t, func(i, n int, t thrift.Type) {
				var k, v string
				r.Struct(func(id int16, t thrift.Type) {
					switch id {
					case 1:
						k = r.String(t)
					case 2:
						v = r.String(t)
					default:
						r.Skip(t)
					}
				})
				if f.KeyValue == nil {
					f.KeyValue = map[string]string{}
				}
				f.KeyValue[k] = v
			})
		case 6:
			f.CreatedBy = r.String(t)
		case 7:
			r.Each(t, func(i, n int, t thrift.Type) {
				o := columnOrder(0)
				r.Struct(func(id int16, t thrift.Type) {
					o = columnOrder(min(max(id, 0), 100))
					r.Skip(t)
				})
				orders = append(orders, o)
			})
		case 8:
			cipher = true
			r.Skip(t)
		default:
			r.Skip(t)
		}
	})
	if cipher && f.modules == nil {
		return encrypted("the footer names an encryption algorithm")
	}
	if r.Err() != nil {
		return fault.Wrap(fault.Corrupt, r.Err(), "footer")
	}
	if !hasRows {
		return fault.New(fault.Corrupt, "footer has no row count")
	}
	var err error
	if f.Root, f.Leaves, err = buildSchema(elems); err != nil {
		return err
	}
	f.Bytes = int64(len(body)) + int64(len(elems))*256
	f.shortChunks = writesShortChunks(f.CreatedBy)
	return f.check(orders)
}

// columnOrder is the union member of a ColumnOrder.
type columnOrder int8

const (
	typeDefinedOrder   columnOrder = 1
	ieeeTotalOrder     columnOrder = 2
	maxLeafDefinitions             = 250 // levels are kept in bytes
)

// check holds the parsed footer against itself and the file.
func (f *Footer) check(orders []columnOrder) error {
	for _, l := range f.Leaves {
		if l.MaxDef > maxLeafDefinitions {
			return fault.New(fault.Unsupported, "column %s has %d definition levels", l.Path(), l.MaxDef)
		}
	}
	var rows int64
	for i, g := range f.RowGroups {
		if len(g.Columns) != len(f.Leaves) {
			return fault.New(fault.Corrupt, "row group %d has %d column chunks, the schema %d columns", i, len(g.Columns), len(f.Leaves))
		}
		if g.NumRows < 0 || g.NumRows > math.MaxInt64-rows {
			return fault.New(fault.Corrupt, "row group %d has %d rows", i, g.NumRows)
		}
		if g.ordinal < 0 {
			g.ordinal = i
		}
		g.FirstRow = rows
		rows += g.NumRows
		for j := range g.Columns {
			c := &g.Columns[j]
			if err := cmp.Or(f.openColumnMetadata(c, g.ordinal, j), f.checkChunk(g, c, f.Leaves[j])); err != nil {
				return fault.Wrap(fault.Corrupt, err, "row group %d, column %s", i, f.Leaves[j].Path())
			}
			if j < len(orders) {
				c.stats.typeOrder = orders[j] == typeDefinedOrder
				c.stats.totalOrder = orders[j] == ieeeTotalOrder
			}
			if at := c.Range().Offset; g.Offset < 0 || at < g.Offset {
				g.Offset = at
			}
		}
		f.Bytes += int64(len(g.Columns)) * 384
	}
	if rows != f.NumRows {
		return fault.New(fault.Corrupt, "footer says %d rows, its row groups hold %d", f.NumRows, rows)
	}
	return nil
}

func (f *Footer) checkChunk(g *RowGroup, c *ColumnChunk, leaf *Node) error {
	if c.cryptoMetadata && f.modules == nil {
		return encrypted("column " + leaf.Path() + " is encrypted")
	}
	if c.physical != leaf.Physical {
		return fault.New(fault.Corrupt, "chunk holds %s, the schema says %s", c.physical, leaf.Physical)
	}
	if !pathMatches(c.path, leaf) {
		return fault.New(fault.Corrupt, "chunk is of column %q", c.path)
	}
	c.path, c.sealedMetadata = nil, nil
	if c.NumValues < 0 || leaf.MaxRep == 0 && c.NumValues != g.NumRows || c.NumValues < g.NumRows {
		return fault.New(fault.Corrupt, "chunk has %d values, the row group %d rows", c.NumValues, g.NumRows)
	}
	at := c.Range()
	if at.Length < 0 || at.Offset < 0 || at.Length > f.Size || at.Offset > f.Size-at.Length {
		return fault.New(fault.Corrupt, "chunk at [%d, +%d) lies outside the file of %d bytes", at.Offset, at.Length, f.Size)
	}
	if c.NumValues > 0 && (at.Length == 0 || at.Offset < 4) {
		return fault.New(fault.Corrupt, "chunk of %d values has %d bytes at %d", c.NumValues, at.Length, at.Offset)
	}
	for _, r := range []*storage.Range{&c.OffsetIndex, &c.ColumnIndex} {
		if r.Length < 0 || r.Offset < 0 || r.Length > f.Size || r.Offset > f.Size-r.Length {
			return fault.New(fault.Corrupt, "page index at [%d, +%d) lies outside the file of %d bytes", r.Offset, r.Length, f.Size)
		}
	}
	if c.BloomOffset < 0 || c.BloomOffset >= f.Size || c.BloomLength < 0 || c.BloomLength > f.Size-c.BloomOffset {
		return fault.New(fault.Corrupt, "bloom filter at [%d, +%d) lies outside the file of %d bytes", c.BloomOffset, c.BloomLength, f.Size)
	}
	return nil
}

// pathMatches compares path_in_schema with the leaf's place. An empty path is let pass: the order of chunks is that of the leaves.
func pathMatches(path [][]byte, leaf *Node) bool {
	if len(path) == 0 {
		return true
	}
	i := len(path) - 1
	for n := leaf; n.Parent != nil; n = n.Parent {
		if i < 0 || string(path[i]) != n.Name {
			return false
		}
		i--
	}
	return i == -1
}

func parseRowGroup(r *thrift.Reader, g *RowGroup, leafHint int) {
	r.Struct(func(id int16, t thrift.Type) {
		switch id {
		case 1:
			r.Each(t, func(i, n int, t thrift.Type) {
				if i == 0 {
					g.Columns = make([]ColumnChunk, 0, min(n, leafHint))
				}
				g.Columns = append(g.Columns, newColumnChunk())
				c := &g.Columns[len(g.Columns)-1]
				parseColumnChunk(r, c)
				if !c.hasMetadata && !c.cryptoMetadata {
					r.Fail(fault.New(fault.Corrupt, "column chunk %d has no metadata", i))
				}
			})
		case 2:
			g.Bytes = r.Int(t)
		case 3:
			g.NumRows = r.Int(t)
		case 7:
			g.ordinal = int(r.Int(t))
		default:
			r.Skip(t)
		}
	})
}

func newColumnChunk() ColumnChunk {
	return ColumnChunk{stats: statistics{nullCount: -1, nanCount: -1, minExact: -1, maxExact: -1}}
}

func parseColumnChunk(r *thrift.Reader, c *ColumnChunk) {
	r.Struct(func(id int16, t thrift.Type) {
		switch id {
		case 1:
			if p := r.Binary(t); len(p) > 0 {
				r.Fail(fault.New(fault.Corrupt, "a column chunk points to another file (%.100q)", p))
			}
		case 3:
			parseColumnMetadata(r, c)
		case 4:
			c.OffsetIndex.Offset = r.Int(t)
		case 5:
			c.OffsetIndex.Length = r.Int(t)
		case 6:
			c.ColumnIndex.Offset = r.Int(t)
		case 7:
			c.ColumnIndex.Length = r.Int(t)
		case 8:
			c.cryptoMetadata = true
			r.Struct(func(id int16, t thrift.Type) {
				c.columnKey = c.columnKey || id != 1 // 1 is the footer's key
				r.Skip(t)
			})
		case 9:
			c.cryptoMetadata = true
			c.sealedMetadata = notNil(r.Binary(t))
		default:
			r.Skip(t)
		}
	})
}

func parseColumnMetadata(r *thrift.Reader, c *ColumnChunk) {
	c.hasMetadata = true
	r.Struct(func(id int16, t thrift.Type) {
		switch id {
		case 1:
			c.physical = Physical(min(max(r.Int(t), -1), 100))
		case 2:
			r.Each(t, func(i, n int, t thrift.Type) {
				if i == 0 {
					c.Encodings = make([]Encoding, 0, n)
				}
				c.Encodings = append(c.Encodings, parseEncoding(r, t))
			})
		case 3:
			r.Each(t, func(i, n int, t thrift.Type) {
				if i == 0 {
					c.path = make([][]byte, 0, min(n, maxSchemaDepth))
				}
				c.path = append(c.path, r.Binary(t))
			})
		case 4:
			c.Codec = Codec(min(max(r.Int(t), -1), 100))
		case 5:
			c.NumValues = r.Int(t)
		case 6:
			c.UncompressedSize = r.Int(t)
		case 7:
			c.CompressedSize = r.Int(t)
		case 9:
			c.DataOffset = r.Int(t)
		case 11:
			c.DictOffset = r.Int(t)
		case 12:
			parseStatistics(r, &c.stats)
		case 13:
			r.Each(t, func(_, _ int, t thrift.Type) {
				var s EncodingStat
				r.Struct(func(id int16, t thrift.Type) {
					switch id {
					case 1:
						s.PageType = r.Int32(t)
					case 2:
						s.Encoding = parseEncoding(r, t)
					case 3:
						s.Count = r.Int32(t)
					default:
						r.Skip(t)
					}
				})
				c.EncodingStats = append(c.EncodingStats, s)
			})
		case 14:
			c.BloomOffset = r.Int(t)
		case 15:
			c.BloomLength = r.Int(t)
		case 17:
			parseGeospatial(r, c)
		default:
			r.Skip(t)
		}
	})
}

// Box is the extent of the geometries of a column chunk in the plane (parquet.thrift: BoundingBox). XMin above XMax is a box across the
// antimeridian: x is at least XMin or at most XMax (Geospatial.md, "Bounding Box").
type Box struct{ XMin, XMax, YMin, YMax float64 }

// parseGeospatial reads GeospatialStatistics, of which the box is kept when all four sides are numbers.
func parseGeospatial(r *thrift.Reader, c *ColumnChunk) {
	r.Struct(func(id int16, t thrift.Type) {
		if id != 1 {
			r.Skip(t)
			return
		}
		b := Box{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
		r.Struct(func(id int16, t thrift.Type) {
			switch id {
			case 1:
				b.XMin = r.Double(t)
			case 2:
				b.XMax = r.Double(t)
			case 3:
				b.YMin = r.Double(t)
			case 4:
				b.YMax = r.Double(t)
			default:
				r.Skip(t)
			}
		})
		if sum := b.XMin + b.XMax + b.YMin + b.YMax; sum == sum && b.YMin <= b.YMax {
			c.Box = &b
		}
	})
}

func parseEncoding(r *thrift.Reader, t thrift.Type) Encoding {
	return Encoding(min(max(r.Int(t), -1), 100))
}

func parseStatistics(r *thrift.Reader, s *statistics) {
	r.Struct(func(id int16, t thrift.Type) {
		switch id {
		case 1:
			s.oldMax = r.Binary(t)
		case 2:
			s.oldMin = r.Binary(t)
		case 3:
			s.nullCount = r.Int(t)
		case 5:
			s.max = notNil(r.Binary(t))
		case 6:
			s.min = notNil(r.Binary(t))
		case 7:
			s.maxExact = flag(r.Bool(t))
		case 8:
			s.minExact = flag(r.Bool(t))
		case 9:
			s.nanCount = r.Int(t)
		default:
			r.Skip(t)
		}
	})
}

// notNil keeps an empty bound apart from a missing one.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func flag(b bool) int8 {
	if b {
		return 1
	}
	return 0
}

// writesShortChunks recognises parquet-mr before 1.2.9 (PARQUET-816).
func writesShortChunks(createdBy string) bool {
	v, ok := strings.CutPrefix(createdBy, "parquet-mr version 1.")
	if !ok {
		return createdBy == "parquet-mr"
	}
	minor, rest, _ := strings.Cut(v, ".")
	patch := 0
	for _, c := range rest {
		if c < '0' || c > '9' || patch > 1000 {
			break
		}
		patch = patch*10 + int(c-'0')
	}
	return minor == "0" || minor == "1" || minor == "2" && patch < 9
}
