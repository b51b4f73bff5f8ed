package orc

import (
	"math"
	"strings"
	"time"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// zone is the time zone in which a stripe's writer wrote timestamps without zone. Their seconds count from the beginning of 2015
// there, so what stands in the file is an instant, and the value is the wall clock of the writer at that instant.
type zone struct {
	loc  *time.Location
	base int64 // Unix time of 2015-01-01 00:00:00

	from, to int64 // instants for which offset holds
	offset   int64 // seconds east

	// java is set when Java's zones made the file: they know nothing of the time before 1900, and give it the zone's present
	// offset.
	java bool
	raw  int64
}

// javaZones is the beginning of 1900, UTC.
const javaZones = -2208988800

var utcZone = zone{loc: time.UTC, base: baseUTC, from: math.MinInt64, to: math.MaxInt64}

const baseUTC = 1420070400

// newZone finds a zone by the name that the stripe footer gives; a file without one is read as UTC.
func newZone(name string, java bool) (zone, error) {
	switch name {
	case "", "UTC", "GMT", "Etc/UTC", "Z", "Etc/GMT":
		return utcZone, nil
	}
	loc, ok := fixedZone(name)
	if !ok {
		var err error
		if loc, err = time.LoadLocation(name); err != nil || name == "Local" {
			return zone{}, fault.New(fault.Unsupported, "its writer's time zone, %.40q, is not known", name)
		}
	}
	z := zone{loc: loc, base: time.Date(2015, 1, 1, 0, 0, 0, 0, loc).Unix(), from: 1, to: 0, java: java}
	for _, month := range [...]time.Month{time.January, time.July} {
		if t := time.Date(2015, month, 1, 0, 0, 0, 0, loc); !t.IsDST() {
			_, offset := t.Zone()
			z.raw = int64(offset)
		}
	}
	return z, nil
}

// fixedZone reads Java's names of fixed offsets, such as GMT+08:00 and GMT-3.
func fixedZone(name string) (*time.Location, bool) {
	rest, ok := strings.CutPrefix(name, "GMT")
	if !ok || len(rest) < 2 || rest[0] != '+' && rest[0] != '-' {
		return nil, false
	}
	for _, layout := range [...]string{"15:04", "15"} {
		digits := rest[1:]
		if len(digits)%3 == 1 { // one digit of the hour
			digits = "0" + digits
		}
		if t, err := time.Parse(layout, digits); err == nil {
			seconds := t.Hour()*3600 + t.Minute()*60
			if rest[0] == '-' {
				seconds = -seconds
			}
			return time.FixedZone(name, seconds), true
		}
	}
	return nil, false
}

// wall gives the seconds of the zone's wall clock at an instant.
func (z *zone) wall(instant int64) int64 {
	if z.java && instant < javaZones {
		return instant + z.raw
	}
	if instant < z.from || instant >= z.to {
		t := time.Unix(instant, 0).In(z.loc)
		_, offset := t.Zone()
		from, to := t.ZoneBounds()
		z.from, z.to, z.offset = math.MinInt64, math.MaxInt64, int64(offset)
		if !from.IsZero() {
			z.from = from.Unix()
		}
		if !to.IsZero() {
			z.to = to.Unix()
		}
	}
	return instant + z.offset
}

// timeLeaf gives timestamps: seconds, and nanoseconds with their trailing zeros taken off.
type timeLeaf struct {
	secs, nanos intRuns
	c           *column
	zone        zone
	instant     bool // wanted as an instant, not as the writer's wall clock
	ns          bool
	out         []int64
	sec         [part]int64
	nano        [part]int64
}

func (l *timeLeaf) begin() {}

var trailing = [8]int64{1, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000}

func (l *timeLeaf) read(at, n int) error {
	if err := grow(l.c.acc, &l.out, at+n, at, 8); err != nil {
		return err
	}
	scale, most := int64(1_000_000), int64(math.MaxInt64/1_000_000-1)
	if l.ns {
		scale, most = 1_000_000_000, math.MaxInt64/1_000_000_000-1
	}
	for n > 0 {
		k := min(n, part)
		if err := l.secs.read(l.sec[:k]); err != nil {
			return err
		}
		if err := l.nanos.read(l.nano[:k]); err != nil {
			return err
		}
		for i, s := range l.sec[:k] {
			u := l.nano[i]
			nano := u >> 3 * trailing[u&7]
			// Arrow's writer gives timestamps before 1970 negative nanoseconds.
			if most := int64(1_000_000_000); u >= most<<3 || -u >= most<<3 || nano >= most || nano <= -most {
				return fault.New(fault.Corrupt, "a timestamp with %d nanoseconds", u>>3)
			}
			if s > maxSeconds || s < -maxSeconds {
				return l.outOfRange(s)
			}
			s += l.zone.base
			// Writers divide milliseconds, rounding towards zero, so the seconds of an instant before 1970 are one too many
			// unless it is whole to the millisecond's end.
			if s < 0 && nano > 999_999 {
				s--
			}
			if !l.instant {
				s = l.zone.wall(s)
			}
			if s > most || s < -most {
				return l.outOfRange(s)
			}
			if !l.ns {
				nano = floorMicros(nano)
			}
			l.out[at+i] = s*scale + nano
		}
		at, n = at+k, n-k
	}
	return nil
}

func floorMicros(nanos int64) int64 {
	if nanos < 0 {
		nanos -= 999
	}
	return nanos / 1000
}

// maxSeconds bounds the seconds of any timestamp, so that sums do not overflow.
const maxSeconds = 1 << 50

func (l *timeLeaf) outOfRange(s int64) error {
	return fault.New(fault.Corrupt, "a timestamp %d seconds away is out of range of %s", s, l.c.want)
}

func (l *timeLeaf) finish(n, m int, valid []uint64) error {
	if err := grow(l.c.acc, &l.out, n, m, 8); err != nil {
		return err
	}
	spread(l.out, n, m, valid)
	l.c.out.I64 = l.out
	return nil
}

func (l *timeLeaf) skip(n int64) error {
	if err := l.secs.skip(n); err != nil {
		return err
	}
	return l.nanos.skip(n)
}

func (l *timeLeaf) seek(p *positions) error {
	if err := l.secs.seek(p); err != nil {
		return err
	}
	return l.nanos.seek(p)
}

func (l *timeLeaf) width() int { return l.secs.width() + l.nanos.width() }

func (l *timeLeaf) places(at int) []place {
	return []place{{l.secs.s, at}, {l.nanos.s, at + l.secs.width()}}
}

// The units of timestamps that are wanted of dates.
const (
	microsPerDay = 86_400_000_000
	nanosPerDay  = 86_400_000_000_000
)

func perDay(t vector.Type) int64 {
	if t.Nanos() {
		return nanosPerDay
	}
	return microsPerDay
}
