//go:build tools

// Package deps pins modules that tests and tools use and no package imports, so that the module file keeps them. It has no code.
package deps

import (
	_ "github.com/RoaringBitmap/roaring/v2"
	_ "github.com/RoaringBitmap/roaring/v2/roaring64"
	_ "github.com/andybalholm/brotli"
	_ "github.com/apache/arrow-go/v18/arrow/array"
	_ "github.com/apache/arrow-go/v18/arrow/compute"
	_ "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	_ "github.com/apache/arrow-go/v18/arrow/flight/flightsql/driver"
	_ "github.com/apache/arrow-go/v18/parquet/pqarrow"
	_ "github.com/apache/iceberg-go/catalog/hadoop"
	_ "github.com/apache/iceberg-go/puffin"
	_ "github.com/apache/iceberg-go/table"
	_ "github.com/apache/iceberg-go/table/dv"
	_ "github.com/cespare/xxhash/v2"
	_ "github.com/google/uuid"
	_ "github.com/jedib0t/go-pretty/v6/table"
	_ "github.com/klauspost/compress/gzip"
	_ "github.com/klauspost/compress/s2"
	_ "github.com/klauspost/compress/snappy"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/peterh/liner"
	_ "github.com/pierrec/lz4/v4"
	_ "github.com/spf13/cobra"
	_ "github.com/stretchr/testify/require"
	_ "github.com/twmb/murmur3"
	_ "go.uber.org/goleak"
	_ "go.uber.org/zap"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/crypto/argon2"
	_ "golang.org/x/crypto/bcrypt"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/term"
	_ "google.golang.org/grpc"
)
