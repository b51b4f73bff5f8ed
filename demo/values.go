package demo

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

var allocator = memory.NewGoAllocator()

// mix is a fixed hash of a row and a column, so that every demo has the same rows.
func mix(row, column int) uint64 {
	x := uint64(row)*0x9e3779b97f4a7c15 + uint64(column)*0xbf58476d1ce4e5b9
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// pick gives a number in [0, n) for a row and column.
func pick(row, column, n int) int { return int(mix(row, column) % uint64(n)) }

func longs(f func(i int) int64) func(array.Builder, int) {
	return func(b array.Builder, i int) { b.(*array.Int64Builder).Append(f(i)) }
}

func ints(f func(i int) int) func(array.Builder, int) {
	return func(b array.Builder, i int) { b.(*array.Int32Builder).Append(int32(f(i))) }
}

func doubles(f func(i int) float64) func(array.Builder, int) {
	return func(b array.Builder, i int) { b.(*array.Float64Builder).Append(f(i)) }
}

// cents appends decimals of scale 2.
func cents(f func(i int) int64) func(array.Builder, int) {
	return func(b array.Builder, i int) { b.(*array.Decimal128Builder).Append(decimal128.FromI64(f(i))) }
}

func texts(f func(i int) string) func(array.Builder, int) {
	return func(b array.Builder, i int) {
		switch b := b.(type) {
		case *array.StringBuilder:
			b.Append(f(i))
		case *array.LargeStringBuilder:
			b.Append(f(i))
		default:
			panic(fmt.Sprintf("demo: no text goes into %T", b))
		}
	}
}

func dates(f func(i int) int) func(array.Builder, int) {
	return func(b array.Builder, i int) { b.(*array.Date32Builder).Append(arrow.Date32(f(i))) }
}

// stamps appends timestamps in microseconds.
func stamps(f func(i int) int64) func(array.Builder, int) {
	return func(b array.Builder, i int) { b.(*array.TimestampBuilder).Append(arrow.Timestamp(f(i))) }
}

// orNull appends a null in one row of every, and what fill gives in the others.
func orNull(every int, fill func(array.Builder, int)) func(array.Builder, int) {
	return func(b array.Builder, i int) {
		if i%every == every-1 {
			b.AppendNull()
			return
		}
		fill(b, i)
	}
}

func oneOf(column int, words ...string) func(i int) string {
	return func(i int) string { return words[pick(i, column, len(words))] }
}

// sentence makes a comment of a few words.
func sentence(column int) func(i int) string {
	words := []string{"quiet", "final", "bold", "express", "regular", "ironic", "pending", "special", "requests", "deposits", "packages", "accounts", "sleep", "along", "the", "carefully", "furiously", "above"}
	return func(i int) string {
		s := ""
		for k := range 3 + pick(i, column, 5) {
			if k > 0 {
				s += " "
			}
			s += words[pick(i, column*31+k, len(words))]
		}
		return s
	}
}
