// Package sql turns statement text into a syntax tree and back: lexer, parser, tree, printer.
//
// The dialect is Trino's with the spellings of Spark, DuckDB and Dremio where they do not conflict. The package knows no
// types, tables or functions: what a name means is for package plan. Everything is a plain value; Parse may be called
// from any number of goroutines, and a tree may be shared once it is made.
package sql
