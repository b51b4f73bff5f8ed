package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/skua-db/skua/fault"
)

// EnvPrefix begins the names of environment variables that set configuration: SKUA__LIMITS__QUERY__MEMORY sets
// limits.query.memory.
const EnvPrefix = "SKUA__"

// Loaded is a configuration with where each of its values came from.
type Loaded struct {
	Config
	// Origins maps a key such as limits.memory to "default", "file:line" or the name of a variable or flag.
	Origins map[string]string
	// Warnings are things that work and should not stay.
	Warnings []string
}

// Load reads a file (empty: none), then the environment, over the defaults. All that is wrong is told at once in one
// fault.Invalid.
func Load(file string, environ []string) (*Loaded, error) {
	l := &loader{out: &Loaded{Origins: map[string]string{}}}
	l.defaults(reflect.ValueOf(&l.out.Config).Elem(), "")
	if file != "" {
		l.file(file)
	}
	l.environment(environ)
	if len(l.faults) > 0 {
		return nil, fault.New(fault.Invalid, "%s", strings.Join(l.faults, "\n"))
	}
	return l.out, nil
}

type loader struct {
	out    *Loaded
	faults []string
}

func (l *loader) fail(where, format string, args ...any) {
	l.faults = append(l.faults, where+": "+fmt.Sprintf(format, args...))
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

// defaults fills a struct from its tags.
func (l *loader) defaults(v reflect.Value, prefix string) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		key := join(prefix, f.Tag.Get("yaml"))
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeOf(Amount{}) {
			l.defaults(v.Field(i), key)
			continue
		}
		if d, ok := f.Tag.Lookup("default"); ok {
			if err := setScalar(v.Field(i), d); err != nil {
				panic(fmt.Sprintf("config: default of %s: %v", key, err)) // a fault in the struct's tags
			}
		}
		l.out.Origins[key] = "default"
	}
}

func (l *loader) file(path string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err // the path stands before it
		}
		l.fail(path, "cannot be read: %v", err)
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		if line, rest, ok := strings.Cut(strings.TrimPrefix(text, "line "), ": "); ok && strings.HasPrefix(text, "line ") {
			path, text = path+":"+line, rest
		}
		l.fail(path, "%s", text)
		return
	}
	if len(doc.Content) == 0 {
		return
	}
	l.node(path, doc.Content[0], reflect.ValueOf(&l.out.Config).Elem(), "", false)
}

// node decodes a YAML node into v. Every fault carries file and line.
func (l *loader) node(file string, n *yaml.Node, v reflect.Value, key string, secret bool) {
	where := fmt.Sprintf("%s:%d", file, n.Line)
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	l.out.Origins[key] = where
	switch {
	case v.Type() == reflect.TypeOf(Amount{}) || v.Kind() != reflect.Struct && v.Kind() != reflect.Map && v.Kind() != reflect.Slice:
		if n.Kind != yaml.ScalarNode {
			l.fail(where, "%s takes one value", key)
			return
		}
		text, literal, err := expand(n.Value)
		if err == nil {
			err = setScalar(v, text)
		}
		if err != nil {
			l.fail(where, "%s: %v", key, err)
		}
		if secret && literal && n.Value != "" {
			l.out.Warnings = append(l.out.Warnings, fmt.Sprintf("%s: %s stands in the file itself; write ${file:...} or ${env:...}", where, key))
		}
	case v.Kind() == reflect.Struct:
		l.mapping(file, n, v, key)
	case v.Kind() == reflect.Map:
		if n.Kind != yaml.MappingNode {
			l.fail(where, "%s takes a mapping of names to values", key)
			return
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if seen[name] {
				l.fail(fmt.Sprintf("%s:%d", file, n.Content[i].Line), "%s stands twice", join(key, name))
			}
			seen[name] = true
			e := reflect.New(v.Type().Elem()).Elem()
			if e.Kind() == reflect.Struct {
				l.defaults(e, join(key, name))
			}
			l.node(file, n.Content[i+1], e, join(key, name), secret || e.Kind() == reflect.String && secretProperty(name))
			v.SetMapIndex(reflect.ValueOf(name), e)
		}
	case v.Kind() == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			l.fail(where, "%s takes a list", key)
			return
		}
		for i, c := range n.Content {
			e, at := reflect.New(v.Type().Elem()).Elem(), fmt.Sprintf("%s[%d]", key, i)
			if e.Kind() == reflect.Struct {
				l.defaults(e, at)
			}
			l.node(file, c, e, at, secret)
			v.Set(reflect.Append(v, e))
		}
	}
}

func (l *loader) mapping(file string, n *yaml.Node, v reflect.Value, key string) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		if key == "" {
			key = "the file"
		}
		l.fail(fmt.Sprintf("%s:%d", file, n.Line), "%s takes a mapping of keys to values", key)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		where := fmt.Sprintf("%s:%d", file, n.Content[i].Line)
		field, known := fieldNamed(v.Type(), name)
		switch {
		case !known:
			l.fail(where, "%s is not a setting%s", join(key, name), suggestion(v.Type(), name))
		case seen[name]:
			l.fail(where, "%s stands twice", join(key, name))
		default:
			l.node(file, n.Content[i+1], v.FieldByIndex(field.Index), join(key, name), field.Tag.Get("secret") == "true")
		}
		seen[name] = true
	}
}

func fieldNamed(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("yaml") == name {
			return t.Field(i), true
		}
	}
	return reflect.StructField{}, false
}

// suggestion names the key that was probably meant: one that name begins, or one that a few changes make of it.
func suggestion(t reflect.Type, name string) string {
	name = strings.ToLower(name)
	best, bestDistance := "", 1+min(3, len(name)/2)
	names := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		k := t.Field(i).Tag.Get("yaml")
		names = append(names, k)
		d := distance(name, k)
		if len(name) > 2 && strings.HasPrefix(k, name) {
			d = min(d, 1)
		}
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	sort.Strings(names)
	return "; there are " + strings.Join(names, ", ")
}

// distance is the Levenshtein distance of two short names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// expand replaces a value of the form ${file:path} or ${env:NAME}, or holding several of them.
func expand(s string) (text string, literal bool, err error) {
	literal = true
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			return text + s, literal, nil
		}
		j := strings.IndexByte(s[i:], '}')
		if j < 0 {
			return "", false, fmt.Errorf("${ without }")
		}
		kind, arg, _ := strings.Cut(s[i+2:i+j], ":")
		var value string
		switch kind {
		case "file":
			raw, err := os.ReadFile(arg)
			if err != nil {
				return "", false, err
			}
			value = strings.TrimRight(string(raw), "\r\n")
		case "env":
			v, ok := os.LookupEnv(arg)
			if !ok {
				return "", false, fmt.Errorf("environment variable %s is not set", arg)
			}
			value = v
		default:
			return "", false, fmt.Errorf("${%s:...} is not known; use ${file:...} or ${env:...}", kind)
		}
		text += s[:i] + value
		s, literal = s[i+j+1:], false
	}
}

func setScalar(v reflect.Value, text string) error {
	switch v.Interface().(type) {
	case Amount:
		a, err := ParseAmount(text)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(a))
		return nil
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is not a duration; write it with a unit, such as 30s or 15m", text)
		}
		v.SetInt(int64(d))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		switch text {
		case "true", "false":
			v.SetBool(text == "true")
		default:
			return fmt.Errorf("%q is neither true nor false", text)
		}
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a whole number from 0", text)
		}
		v.SetInt(int64(n))
	}
	return nil
}

// environment applies SKUA__* variables. One that names no scalar setting is a fault: a typing error must not pass for
// a setting.
func (l *loader) environment(environ []string) {
	for _, kv := range environ {
		name, text, _ := strings.Cut(kv, "=")
		path, ok := strings.CutPrefix(name, EnvPrefix)
		if !ok {
			continue
		}
		v := reflect.ValueOf(&l.out.Config).Elem()
		key := ""
		for _, part := range strings.Split(strings.ToLower(path), "__") {
			if v.Kind() != reflect.Struct || v.Type() == reflect.TypeOf(Amount{}) {
				l.fail(name, "there is nothing below %s to set from the environment", key)
				v = reflect.Value{}
				break
			}
			f, known := fieldNamed(v.Type(), part)
			if !known {
				l.fail(name, "%s is not a setting%s", join(key, part), suggestion(v.Type(), part))
				v = reflect.Value{}
				break
			}
			key, v = join(key, part), v.FieldByIndex(f.Index)
		}
		if !v.IsValid() {
			continue
		}
		if k := v.Kind(); k == reflect.Map || k == reflect.Slice || k == reflect.Struct && v.Type() != reflect.TypeOf(Amount{}) {
			l.fail(name, "%s is not a single value; set it in the file", key)
			continue
		}
		if err := setScalar(v, text); err != nil {
			l.fail(name, "%s: %v", key, err)
		}
		l.out.Origins[key] = name
	}
}
