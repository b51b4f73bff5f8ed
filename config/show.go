package config

import (
	"fmt"
	"io"
	"reflect"
	"sort"
	"strings"
	"time"
)

// Show writes every setting with its value; with origins also where the value came from. Secrets are not shown.
func (l *Loaded) Show(w io.Writer, origins bool) error {
	var lines [][2]string
	var visit func(v reflect.Value, key string, secret bool)
	visit = func(v reflect.Value, key string, secret bool) {
		switch {
		case v.Kind() == reflect.Struct && v.Type() != reflect.TypeOf(Amount{}):
			for i := range v.NumField() {
				f := v.Type().Field(i)
				visit(v.Field(i), join(key, f.Tag.Get("yaml")), f.Tag.Get("secret") == "true")
			}
		case v.Kind() == reflect.Map:
			keys := v.MapKeys()
			sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
			for _, k := range keys {
				visit(v.MapIndex(k), join(key, k.String()), secret || secretProperty(k.String()))
			}
		case v.Kind() == reflect.Slice:
			for i := range v.Len() {
				visit(v.Index(i), fmt.Sprintf("%s[%d]", key, i), secret)
			}
		default:
			text := fmt.Sprint(v.Interface())
			if secret && text != "" {
				text = "«redacted»"
			}
			lines = append(lines, [2]string{key + ": " + text, l.Origins[key]})
		}
	}
	visit(reflect.ValueOf(l.Config), "", false)
	for _, line := range lines {
		text := line[0]
		if origins {
			text = fmt.Sprintf("%-60s # %s", text, line[1])
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

// secretProperty reports whether a catalog property is one to hide.
func secretProperty(name string) bool {
	n := strings.ToLower(name)
	for _, part := range []string{"secret", "password", "credential", "token", "private-key", "access-key", "header.", "sas"} {
		if strings.Contains(n, part) {
			return true
		}
	}
	return false
}

// Docs writes one line a setting: key, type, default and what it is for, straight from the struct.
func Docs(w io.Writer) error {
	var visit func(t reflect.Type, key string) error
	visit = func(t reflect.Type, key string) error {
		for i := range t.NumField() {
			f := t.Field(i)
			name := join(key, f.Tag.Get("yaml"))
			typ, below := f.Type, reflect.Type(nil)
			word := typeWord(typ)
			switch {
			case typ.Kind() == reflect.Map && typ.Elem().Kind() == reflect.Struct:
				below, name = typ.Elem(), name+".<name>"
			case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct:
				below, name = typ.Elem(), name+"[]"
			case typ.Kind() == reflect.Struct && typ != reflect.TypeOf(Amount{}):
				below = typ
			}
			line := fmt.Sprintf("%-36s %-9s", name, word)
			if d := f.Tag.Get("default"); d != "" {
				line += " default " + d + "."
			}
			if _, err := fmt.Fprintln(w, strings.TrimRight(line+" "+f.Tag.Get("doc"), " ")); err != nil {
				return err
			}
			if below != nil {
				if err := visit(below, name); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return visit(reflect.TypeOf(Config{}), "")
}

func typeWord(t reflect.Type) string {
	switch {
	case t == reflect.TypeOf(Amount{}):
		return "size"
	case t == reflect.TypeOf(time.Duration(0)):
		return "duration"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.Int:
		return "number"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.Map:
		return "map"
	}
	return "section"
}
