package expr

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones must not depend on the machine

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// A timestamp with time zone is an instant. The zone that AT TIME ZONE or a literal gave it travels in the CRS of its type, which
// type equality does not look at; without one the session's zone is used.

var zones sync.Map // name -> *time.Location

// LoadZone finds a zone by name ("Europe/Berlin", "UTC") or offset ("+05:30", "-08").
func LoadZone(name string) (*time.Location, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	z, err := loadZone(name)
	if err != nil {
		return nil, err
	}
	zones.Store(name, z)
	return z, nil
}

func loadZone(name string) (*time.Location, error) {
	bad := fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "%q is not a time zone", name)
	if name == "" || len(name) > 64 {
		return nil, bad
	}
	if name[0] == '+' || name[0] == '-' {
		h, m, _ := strings.Cut(name[1:], ":")
		if m == "" && len(h) == 4 {
			h, m = h[:2], h[2:]
		}
		hours, err := strconv.ParseUint(h, 10, 8)
		if err != nil || hours > 14 {
			return nil, bad
		}
		mins := uint64(0)
		if m != "" {
			if mins, err = strconv.ParseUint(m, 10, 8); err != nil || mins > 59 {
				return nil, bad
			}
		}
		off := int(hours*3600 + mins*60)
		if name[0] == '-' {
			off = -off
		}
		if off == 0 {
			return time.UTC, nil
		}
		return time.FixedZone(fmt.Sprintf("%c%02d:%02d", name[0], hours, mins), off), nil
	}
	switch strings.ToUpper(name) {
	case "UTC", "Z", "GMT", "ZULU", "UT", "ETC/UTC":
		return time.UTC, nil
	case "LOCAL":
		return nil, bad
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, bad
	}
	return z, nil
}

func zoneName(z *time.Location) string {
	if z == nil {
		return "UTC"
	}
	return z.String()
}

// zoneOf is the zone of a type, else the session's, else UTC.
func zoneOf(t vector.Type, session *time.Location) *time.Location {
	if t.Kind == vector.TimestampTZ && t.CRS != "" {
		if z, err := LoadZone(t.CRS); err == nil {
			return z
		}
	}
	if session != nil {
		return session
	}
	return time.UTC
}

// offsetAt is what to add to an instant to read its wall clock, in units of t.
func offsetAt(v int64, t vector.Type, z *time.Location) int64 {
	if z == nil || z == time.UTC {
		return 0
	}
	per := unitsPerSecond(t)
	_, off := time.Unix(floorDiv(v, per), 0).In(z).Zone()
	return int64(off) * per
}

// instant turns a wall clock into an instant. In the hour that a zone skips ok is false and the clock is moved forward; in the hour
// it repeats the earlier instant is taken.
func instant(wall int64, t vector.Type, z *time.Location) (v int64, ok bool) {
	if z == nil || z == time.UTC {
		return wall, true
	}
	per := unitsPerSecond(t)
	sec := floorDiv(wall, per)
	_, before := time.Unix(sec-86400, 0).In(z).Zone()
	_, after := time.Unix(sec+86400, 0).In(z).Zone()
	for _, off := range [2]int{before, after} {
		u := sec - int64(off)
		if _, o := time.Unix(u, 0).In(z).Zone(); o == off {
			return wall - int64(off)*per, true
		}
	}
	return wall - int64(before)*per, false
}

// civil is the inverse of vector.CivilDays.
func civil(days int64) (y int64, m, d int) {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = int(doy - (153*mp+2)/5 + 1)
	m = int(mp) + 3
	if m > 12 {
		m -= 12
	}
	y = yoe + era*400
	if m <= 2 {
		y++
	}
	return y, m, d
}

func leap(y int64) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }

func monthDays(y int64, m int) int {
	switch m {
	case 2:
		if leap(y) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// addMonths moves a day by months, to the last day of the month where the day does not exist.
func addMonths(days, months int64) int64 {
	y, m, d := civil(days)
	k := y*12 + int64(m-1) + months
	y, m = floorDiv(k, 12), int(floorMod(k, 12))+1
	return vector.CivilDays(y, m, min(d, monthDays(y, m)))
}
