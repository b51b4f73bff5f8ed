// Package supported holds, as data, what of the Iceberg specification Skua reads and which tests show it, and makes docs/SUPPORTED.md from
// that and the results of a run: a line says what its feature claims only when all of its tests ran and passed. Its own test proves
// that every test and case that is named exists.
//
// It is not part of the product.
package supported

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// state tells how far a feature goes.
type state string

const (
	yes     state = "yes"
	partly  state = "partly"
	refused state = "refused" // by a clear error
	later   state = "not yet"
)

// feature is a line of the document. Tests are folder.TestName of Go tests (the folder below the module), or group/table of the cases
// in integration/conformance.
type feature struct {
	name  string
	state state
	note  string
	tests []string
}

type section struct {
	title, about string
	features     []feature
}

// Results are the tests that ran, by folder.TestName or group/table, and whether they passed.
type Results map[string]bool

// shown writes the tests of a feature, and the state that they prove.
func (r Results) shown(f *feature) (state, tests string) {
	names := make([]string, len(f.tests))
	state = string(f.state)
	for i, t := range f.tests {
		names[i] = "`" + t + "`"
		passed, ran := r[t]
		switch {
		case !ran:
			names[i] += " (did not run)"
		case !passed:
			names[i] += " (**fails**)"
		}
		if !ran || !passed {
			state = "**not shown**"
		}
	}
	return state, strings.Join(names, ", ")
}

// Document writes the page from the results of a run.
func Document(r Results) string {
	var b strings.Builder
	b.WriteString("# What Skua reads\n\nGenerated from the results of a run of all tests by `integration/run go conformance supported`, which fails when this page says anything else.\n")
	b.WriteString("A line claims something only when every test that it names ran and passed. A name such as `scanner.TestEvolution` is a Go test of that\n")
	b.WriteString("folder; `jdv/all_deleted` is a table of integration/conformance, all of whose cases run over Flight SQL.\n")
	for i := range sections {
		s := &sections[i]
		fmt.Fprintf(&b, "\n## %s\n\n", s.title)
		if s.about != "" {
			fmt.Fprintf(&b, "%s\n\n", s.about)
		}
		b.WriteString("| | read | shown by |\n|---|---|---|\n")
		for k := range s.features {
			f := &s.features[k]
			state, tests := r.shown(f)
			fmt.Fprintf(&b, "| %s | %s | %s |\n", f.title(), state, tests)
		}
	}
	fmt.Fprintf(&b, "\n## Reports about other readers\n\nFaults that users of other Iceberg readers have reported, each with the test that shows that Skua does not have it.\n\n")
	b.WriteString("| # | fault | state | shown by |\n|---|---|---|---|\n")
	for i := range reports {
		state, tests := r.shown(&reports[i])
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", i+1, reports[i].title(), state, tests)
	}
	return b.String()
}

func (f *feature) title() string {
	if f.note == "" {
		return f.name
	}
	return f.name + ". " + f.note
}

// ReadGo adds the outcome of the tests of a module from what "go test -json" printed.
func (r Results) ReadGo(in io.Reader, module string) error {
	d := json.NewDecoder(in)
	for {
		var e struct{ Action, Package, Test string }
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if e.Test == "" || strings.Contains(e.Test, "/") || e.Action != "pass" && e.Action != "fail" && e.Action != "skip" {
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(e.Package, module), "/") + "." + e.Test
		before, ran := r[name]
		r[name] = e.Action == "pass" && (before || !ran)
	}
}

// caseOf is what an id adds to its group and table.
var caseOf = regexp.MustCompile(`^([^/]+/[^/]+?)(?:/.*|-[0-9]+)$`)

// ReadCases adds the outcome of conformance cases, whose ids are group/table/case or group/table-number, from what the runner wrote. A table passes
// when all of its cases do.
func (r Results) ReadCases(in io.Reader) error {
	var cases []struct{ ID, Status string }
	if err := json.NewDecoder(in).Decode(&cases); err != nil {
		return err
	}
	for _, c := range cases {
		m := caseOf.FindStringSubmatch(c.ID)
		if m == nil {
			return fmt.Errorf("case %q does not say its table", c.ID)
		}
		name := m[1]
		before, ran := r[name]
		r[name] = c.Status == "pass" && (before || !ran)
	}
	return nil
}
