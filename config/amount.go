package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Amount is a number of bytes, or a percentage of something that its setting names.
type Amount struct {
	Bytes   int64
	Percent float64 // when Bytes is 0
}

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
}

// ParseAmount reads "12GiB" or "40%". A bare number is refused: its unit would be a guess.
func ParseAmount(s string) (Amount, error) {
	text := strings.TrimSpace(s)
	if p, ok := strings.CutSuffix(text, "%"); ok {
		f, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || f <= 0 || f > 100 {
			return Amount{}, fmt.Errorf("%q is not a share between 0%% and 100%%", s)
		}
		return Amount{Percent: f}, nil
	}
	for _, u := range sizeUnits {
		num, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || f < 0 || f*float64(u.bytes) > 1<<62 {
			break
		}
		return Amount{Bytes: int64(f * float64(u.bytes))}, nil
	}
	return Amount{}, fmt.Errorf("%q is not a size; write it with a unit, such as 512MiB, or as a share, such as 40%%", s)
}

// Of resolves the amount against the whole that its percentage speaks of, in bytes.
func (a Amount) Of(whole int64) int64 {
	if a.Bytes > 0 {
		return a.Bytes
	}
	return int64(a.Percent / 100 * float64(whole))
}

// String writes the amount as ParseAmount reads it.
func (a Amount) String() string {
	if a.Percent > 0 {
		return strconv.FormatFloat(a.Percent, 'f', -1, 64) + "%"
	}
	for _, u := range sizeUnits[:4] {
		if a.Bytes >= u.bytes && a.Bytes%u.bytes == 0 {
			return strconv.FormatInt(a.Bytes/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(a.Bytes, 10) + "B"
}
