package expr

import (
	"slices"
	"strings"

	"github.com/skua-db/skua/vector"
)

// Function is one overload of a scalar function or operator of the registry.
type Function struct {
	Name string

	doc      string
	params   []pattern
	variadic bool // the last parameter repeats, at least once unless optional
	optional bool // the repeated parameter may be absent
	ret      pattern
	// result computes the type where it depends on more than the bound variables; nil uses ret. An
	// error refuses the overload.
	result func(args []vector.Type) (vector.Type, error)
	// check sees the argument expressions, for constants that must be right.
	check func(args []Expr) error
	// make prepares a kernel for one program.
	make func(b *binding) (kernel, error)
	// onNull: the kernel is called for rows with null arguments too.
	onNull bool
	// mayNull: the result may be null for arguments that are not.
	mayNull  bool
	volatile bool
	session  bool // takes its value from the Context
	hidden   bool
}

// AggregateFunction is an aggregate function of the registry.
type AggregateFunction struct {
	Name string

	doc  string
	sigs []*aggSig
}

// FunctionInfo describes an overload for SHOW FUNCTIONS and the documentation.
type FunctionInfo struct {
	Name, Return, Arguments, Kind, Description string
	Deterministic                              bool
}

// binding is what a kernel is made for: the types after coercion and the run.
type binding struct {
	args []Expr
	ret  vector.Type
	ctx  *Context
}

// evalCall is one call of a kernel for a chunk.
type evalCall struct {
	ctx     *Context
	args    []*vector.Vector // nil at the place of a lambda
	lambdas []*lambdaProgram // nil elsewhere
	sel     []uint16         // nil: rows 0..n-1
	n       int
	b       *batch
	buf     [2]result // of denseOf
	wide    [2][]vector.Int128
}

// kernel computes the selected rows of out, which has its payload allocated for n rows and its Valid set to the
// rows whose arguments are not null (unless onNull). Rows outside the selection must not fail.
type kernel func(x *evalCall, out *vector.Vector) error

// pattern is a parameter type: a kind, a type variable, a nested pattern or a lambda.
type pattern struct {
	name string // type variable (upper case), "any", "function" or empty
	kind vector.Kind
	subs []pattern
}

var patternKinds = map[string]vector.Kind{
	"boolean": vector.Boolean, "tinyint": vector.TinyInt, "smallint": vector.SmallInt, "integer": vector.Integer, "bigint": vector.BigInt,
	"real": vector.Real, "double": vector.Double, "decimal": vector.Decimal, "varchar": vector.Varchar, "varbinary": vector.Varbinary,
	"uuid": vector.UUID, "date": vector.Date, "time": vector.Time, "timestamp": vector.Timestamp, "timestamptz": vector.TimestampTZ,
	"interval_year": vector.IntervalYear, "interval_day": vector.IntervalDay, "array": vector.Array, "map": vector.Map, "row": vector.Row,
	"json": vector.JSON, "variant": vector.Variant, "unknown": vector.Null, "geometry": vector.Geometry, "geography": vector.Geography,
}

func (p pattern) String() string {
	var subs []string
	for _, s := range p.subs {
		subs = append(subs, s.String())
	}
	in := ""
	if subs != nil {
		in = "(" + strings.Join(subs, ", ") + ")"
	}
	if p.name != "" {
		return p.name + in
	}
	switch p.kind {
	case vector.Array, vector.Map, vector.Row:
		for k, v := range patternKinds {
			if v == p.kind {
				return k + in
			}
		}
	case vector.Decimal:
		return "decimal"
	case vector.Timestamp:
		return "timestamp"
	case vector.TimestampTZ:
		return "timestamp with time zone"
	case vector.Time:
		return "time"
	}
	return vector.Of(p.kind).String() + in
}

// parsePattern reads one pattern and gives the rest of the text.
func parsePattern(s string) (pattern, string) {
	s = strings.TrimLeft(s, " ")
	i := 0
	for i < len(s) && (s[i] == '_' || s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z') {
		i++
	}
	var p pattern
	word := s[:i]
	if k, ok := patternKinds[word]; ok {
		p.kind = k
	} else if word == "any" || word == "function" || len(word) == 1 {
		p.name = word
	} else {
		panic("expr: bad signature near " + s)
	}
	s = s[i:]
	if strings.HasPrefix(s, "(") {
		s = s[1:]
		for {
			var q pattern
			q, s = parsePattern(s)
			p.subs = append(p.subs, q)
			s = strings.TrimLeft(s, " ")
			if s[0] == ')' {
				return p, s[1:]
			}
			s = s[1:]
		}
	}
	return p, s
}

// parseSignature reads "(varchar, bigint...) varchar".
func parseSignature(sig string) (params []pattern, variadic bool, ret pattern) {
	s := strings.TrimPrefix(sig, "(")
	for {
		s = strings.TrimLeft(s, ", ")
		if s[0] == ')' {
			s = s[1:]
			break
		}
		var p pattern
		p, s = parsePattern(s)
		params = append(params, p)
		if strings.HasPrefix(s, "...") {
			variadic = true
			s = s[3:]
		}
	}
	ret, _ = parsePattern(s)
	return params, variadic, ret
}

// registry holds the overloads by name. It is filled by the init of each family's file and read-only afterwards.
var registry = map[string][]*Function{}

type option func(*Function)

func returns(f func(args []vector.Type) (vector.Type, error)) option {
	return func(x *Function) { x.result = f }
}

var (
	onNull     option = func(f *Function) { f.onNull, f.mayNull = true, true }
	mayNull    option = func(f *Function) { f.mayNull = true }
	volatile   option = func(f *Function) { f.volatile = true }
	session    option = func(f *Function) { f.session = true }
	hidden     option = func(f *Function) { f.hidden = true }
	optionally option = func(f *Function) { f.optional = true }
)

// def registers an overload with a kernel that needs no preparation.
func def(names, sig, doc string, k kernel, opts ...option) {
	defMake(names, sig, doc, func(*binding) (kernel, error) { return k, nil }, opts...)
}

// defMake registers an overload whose kernel is made for each program. Several names, separated by spaces, are aliases.
func defMake(names, sig, doc string, mk func(*binding) (kernel, error), opts ...option) {
	for _, name := range strings.Fields(names) {
		f := &Function{Name: name, doc: doc, make: mk}
		f.params, f.variadic, f.ret = parseSignature(sig)
		for _, o := range opts {
			o(f)
		}
		registry[name] = append(registry[name], f)
	}
}

// Functions lists every overload of every function, by name.
func Functions() []FunctionInfo {
	var out []FunctionInfo
	for name, fs := range registry {
		for _, f := range fs {
			if f.hidden {
				continue
			}
			out = append(out, FunctionInfo{Name: name, Return: f.ret.String(), Arguments: patternList(f.params, f.variadic), Kind: "scalar",
				Description: f.doc, Deterministic: !f.volatile})
		}
	}
	for name, s := range specials {
		out = append(out, FunctionInfo{Name: name, Return: "T", Arguments: s.args, Kind: "scalar", Description: s.doc, Deterministic: true})
	}
	for name, a := range aggregates {
		for _, s := range a.sigs {
			out = append(out, FunctionInfo{Name: name, Return: s.ret.String(), Arguments: patternList(slices.Concat(s.params, s.lambdas), false), Kind: "aggregate", Description: a.doc, Deterministic: true})
		}
	}
	for name, w := range windows {
		out = append(out, FunctionInfo{Name: name, Return: w.ret, Arguments: w.args, Kind: "window", Description: w.doc, Deterministic: true})
	}
	slices.SortFunc(out, func(a, b FunctionInfo) int {
		return strings.Compare(a.Name+"("+a.Arguments, b.Name+"("+b.Arguments)
	})
	return out
}

func patternList(ps []pattern, variadic bool) string {
	var out []string
	for _, p := range ps {
		out = append(out, p.String())
	}
	s := strings.Join(out, ", ")
	if variadic {
		s += "..."
	}
	return s
}
