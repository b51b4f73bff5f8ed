package expr

import (
	"testing"
	"time"

	"github.com/skua-db/skua/vector"
)

// FuzzCastText casts any text to every type that text can be cast to: the answer is a value or an error, and a value casts back.
func FuzzCastText(f *testing.F) {
	for _, s := range []string{"12", " -7 ", "1.5e3", "NaN", "2024-02-29", "2024-02-29 12:34:56.789 Europe/Berlin", "+05:30", "12:34:56", "true",
		"12151fd2-7586-11e9-8f9e-2a86e4085a59", "99999999999999999999999999999999999999.5", "-0", "1e400", ".", "2024-01-01 00:00:00.123456789012"} {
		f.Add(s)
	}
	to := []vector.Type{boolean, vector.Of(vector.TinyInt), integer, bigint, real32, double, vector.DecimalOf(5, 2), vector.DecimalOf(38, 10), dateType,
		vector.Of(vector.Time), vector.Of(vector.Timestamp), {Kind: vector.TimestampTZ, Precision: 9}, vector.Of(vector.UUID), jsonType}
	ctx := &Context{Zone: time.UTC}
	f.Fuzz(func(t *testing.T, s string) {
		for _, ty := range to {
			v, err := castValue(s, varchar, ty, ctx)
			if err != nil {
				continue
			}
			text, err := castValue(v, ty, varchar, ctx)
			if err != nil {
				if ty.Kind == vector.JSON {
					continue
				}
				t.Fatalf("%q as %s is %v, which has no text: %v", s, ty, v, err)
			}
			if ty.Kind == vector.JSON {
				continue
			}
			back, err := castValue(text, varchar, ty, ctx)
			if err != nil || CompareValues(ty, v, back) != 0 {
				t.Fatalf("%q as %s is %v, then %q, then %v (%v)", s, ty, v, text, back, err)
			}
		}
		_, _ = NewTimestampLiteral(s)
	})
}

// FuzzPatterns runs the small languages that texts are written in.
func FuzzPatterns(f *testing.F) {
	f.Add("$.a[0].b", `{"a":[{"b":1}]}`)
	f.Add("lax $.c[0 to last].size()", `{"c":[1,2]}`)
	f.Add(`lax $.c[last - 1, 0 to 1]?(@ > 1.5 && !exists(@.x) || (@ == "a") is unknown).type()`, `{"c":[1,2]}`)
	f.Add(`strict -$v * (2 + $."a b") ? (@ like_regex "^x" flag "i")`, `{"v":3}`)
	f.Add("%Y-%m-%d %H:%i:%s.%f", "2024-02-29 01:02:03.5")
	f.Add("yyyy-MM-dd'T'HH:mm", "2024-02-29T01:02")
	f.Add("a%b_c", "axxbyc")
	f.Add("%1$s %,.2f %05d", "x")
	f.Fuzz(func(t *testing.T, p, s string) {
		if path, err := parseJSONPath(p); err == nil {
			if v, err := decodeJSON(s); err == nil {
				items, _ := path.find(v)
				_ = jsonText(items)
			}
		}
		if path, err := parseSQLPath(p); err == nil {
			if v, err := decodeJSON(s); err == nil {
				vars, _ := v.(jsonObject)
				items, _ := path.findWith(v, vars)
				_ = jsonText(items)
			}
		}
		_, _ = parseMySQL(s, p)
		_, _ = parseJava(s, p, time.UTC)
		_, _ = formatMySQL(19000, 3600e9, p)
		_, _ = formatJava(19000, 3600e9, p, "Z", "UTC")
		_, _ = parseISO(s, time.UTC)
		if m, err := compileLike(p, '\\', false); err == nil {
			m.match([]byte(s))
		}
		_, _ = formatText(p, []vector.Value{s, 1.5, int32(7)}, []vector.Type{varchar, double, integer}, &Context{})
	})
}

// FuzzLike compares the matcher with the plain recursive definition.
func FuzzLike(f *testing.F) {
	f.Add("a%b_c%", "aXbYcZ")
	f.Add("%%_", "ä")
	f.Add("%ab%ab", "abab")
	f.Fuzz(func(t *testing.T, p, s string) {
		if len(p) > 12 || len(s) > 24 {
			return
		}
		p, s = string([]rune(p)), string([]rune(s))
		m, err := compileLike(p, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := m.match([]byte(s)), likeByDefinition([]rune(p), []rune(s)); got != want {
			t.Fatalf("%q like %q: %v, not %v", s, p, got, want)
		}
	})
}

func likeByDefinition(p, s []rune) bool {
	if len(p) == 0 {
		return len(s) == 0
	}
	switch p[0] {
	case '%':
		for i := 0; i <= len(s); i++ {
			if likeByDefinition(p[1:], s[i:]) {
				return true
			}
		}
		return false
	case '_':
		return len(s) > 0 && likeByDefinition(p[1:], s[1:])
	}
	return len(s) > 0 && s[0] == p[0] && likeByDefinition(p[1:], s[1:])
}
