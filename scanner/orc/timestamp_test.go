package orc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// TestZones reads wall clocks that were written in several zones: they are what the writer's clock showed, whatever the zone.
func TestZones(t *testing.T) {
	var vals []vector.Value
	for _, s := range []string{"1970-01-01T00:00:00", "1969-12-31T23:59:58.5", "1900-06-15T12:34:56.789012345", "2015-01-01T00:00:00", "2020-07-01T00:00:00.001",
		"2021-03-28T03:30:00", "2021-10-31T01:59:59.999999999", "1950-01-01T00:00:00.000001", "2200-12-31T23:59:59"} {
		x, err := time.Parse("2006-01-02T15:04:05", s)
		require.NoError(t, err)
		vals = append(vals, x.UnixNano())
	}
	for _, zone := range []string{"", "UTC", "America/Los_Angeles", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"} {
		for _, v1 := range []bool{false, true} {
			got, err := one(t, field("c", Timestamp), vals, vector.Type{Kind: vector.Timestamp, Precision: 9}, func(w *writer) { w.zone, w.v1 = zone, v1 })
			require.NoError(t, err)
			require.Equal(t, vals, got, zone)
		}
	}
	micros, err := one(t, field("c", Timestamp), vals, vector.Of(vector.Timestamp), nil)
	require.NoError(t, err)
	require.Equal(t, floorMicros(vals[2].(int64)), micros[2], "below a microsecond nothing is rounded up")

	// An instant is what a table with time zone asks of a wall clock.
	noon := time.Date(2020, 7, 1, 12, 0, 0, 0, time.UTC).UnixNano()
	got, err := one(t, field("c", Timestamp), []vector.Value{noon}, vector.Of(vector.TimestampTZ), func(w *writer) { w.zone = "Europe/Berlin" })
	require.NoError(t, err)
	require.Equal(t, []vector.Value{noon/1000 - 2*3600*1_000_000}, got)
	got, err = one(t, field("c", TimestampInstant), []vector.Value{noon}, vector.Of(vector.TimestampTZ), func(w *writer) { w.zone = "Europe/Berlin" })
	require.NoError(t, err)
	require.Equal(t, []vector.Value{noon / 1000}, got)
}

func TestZoneNames(t *testing.T) {
	for name, seconds := range map[string]int64{"GMT+08:00": 8 * 3600, "GMT-3": -3 * 3600, "GMT+9:30": 9*3600 + 1800} {
		z, err := newZone(name, true)
		require.NoError(t, err)
		require.Equal(t, seconds, z.wall(0), name)
		require.Equal(t, baseUTC-seconds, z.base)
	}
	for _, name := range []string{"Mars/Base", "Local", "GMT+", "../../etc/passwd"} {
		_, err := newZone(name, true)
		require.ErrorIs(t, err, fault.Unsupported, name)
	}
	z, err := newZone("America/Los_Angeles", true)
	require.NoError(t, err)
	require.EqualValues(t, -8*3600, z.wall(javaZones-1)-(javaZones-1), "Java knows no local mean time")
	z, err = newZone("America/Los_Angeles", false)
	require.NoError(t, err)
	require.EqualValues(t, -28378, z.wall(-3e9)+3e9)
}
