package catalog

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/skua-db/skua/fault"
)

// maxSchemaDepth bounds the nesting of types; no writer comes near it.
const maxSchemaDepth = 200

type fieldDoc struct {
	ID             *int            `json:"id"`
	Name           *string         `json:"name"`
	Type           json.RawMessage `json:"type"`
	InitialDefault json.RawMessage `json:"initial-default"`
}

type typeDoc struct {
	Type      string          `json:"type"`
	SchemaID  int             `json:"schema-id"`
	Fields    json.RawMessage `json:"fields"`
	ElementID *int            `json:"element-id"`
	Element   json.RawMessage `json:"element"`
	KeyID     *int            `json:"key-id"`
	Key       json.RawMessage `json:"key"`
	ValueID   *int            `json:"value-id"`
	Value     json.RawMessage `json:"value"`
}

// checkSchema reads a schema's JSON before the model does, because here a fault can be told with the column's name: a
// field id or a sibling's name used twice, a type that does not exist or has impossible parameters, a default before
// format version 3. It gives the schema's id and puts the initial defaults that it finds into defaults, by field id.
func checkSchema(raw json.RawMessage, formatVersion int, defaults map[int]json.RawMessage) (int, error) {
	c := schemaCheck{version: formatVersion, ids: map[int]string{}, defaults: defaults}
	var t typeDoc
	if err := json.Unmarshal(raw, &t); err != nil {
		return 0, fault.New(fault.Corrupt, "schema is not valid: %v", err)
	}
	c.schema = t.SchemaID
	return t.SchemaID, c.fields("", t.Fields, 0)
}

type schemaCheck struct {
	schema, version int
	ids             map[int]string
	defaults        map[int]json.RawMessage
}

func (c *schemaCheck) claim(id *int, name string) error {
	if id == nil {
		return fault.New(fault.Corrupt, "schema %d: column %s has no field id", c.schema, name)
	}
	if other, ok := c.ids[*id]; ok {
		return fault.New(fault.Corrupt, "schema %d: field id %d is used twice, by %s and %s", c.schema, *id, other, name)
	}
	c.ids[*id] = name
	return nil
}

func (c *schemaCheck) fields(prefix string, raw json.RawMessage, depth int) error {
	if depth > maxSchemaDepth {
		return fault.New(fault.Corrupt, "schema %d: types are nested more than %d deep", c.schema, maxSchemaDepth)
	}
	var fields []fieldDoc
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return fault.New(fault.Corrupt, "schema %d: the fields %sare not a list of columns", c.schema, of(prefix))
	}
	names := map[string]bool{}
	for _, f := range fields {
		if f.Name == nil {
			return fault.New(fault.Corrupt, "schema %d: a column %shas no name", c.schema, of(prefix))
		}
		name := prefix + *f.Name
		if names[*f.Name] {
			return fault.New(fault.Corrupt, "schema %d: column name %s is used twice", c.schema, name)
		}
		names[*f.Name] = true
		if err := c.claim(f.ID, name); err != nil {
			return err
		}
		if d := bytes.TrimSpace(f.InitialDefault); len(d) > 0 && !bytes.Equal(d, []byte("null")) {
			if c.version < 3 {
				return fault.New(fault.Corrupt, "schema %d: column %s has an initial default, which format version %d does not allow", c.schema, name, c.version)
			}
			c.defaults[*f.ID] = d
		}
		if err := c.typ(name, f.Type, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *schemaCheck) typ(name string, raw json.RawMessage, depth int) error {
	var primitive string
	if json.Unmarshal(raw, &primitive) == nil {
		return c.primitive(name, primitive)
	}
	var t typeDoc
	if err := json.Unmarshal(raw, &t); err != nil {
		return fault.New(fault.Corrupt, "schema %d: the type of column %s is not valid", c.schema, name)
	}
	switch t.Type {
	case "struct":
		return c.fields(name+".", t.Fields, depth+1)
	case "list":
		if err := c.claim(t.ElementID, name+".element"); err != nil {
			return err
		}
		return c.nested(name+".element", t.Element, depth)
	case "map":
		if err := c.claim(t.KeyID, name+".key"); err != nil {
			return err
		}
		if err := c.claim(t.ValueID, name+".value"); err != nil {
			return err
		}
		if err := c.nested(name+".key", t.Key, depth); err != nil {
			return err
		}
		return c.nested(name+".value", t.Value, depth)
	}
	return fault.New(fault.Corrupt, "schema %d: column %s: type %q is unknown", c.schema, name, t.Type)
}

func (c *schemaCheck) nested(name string, raw json.RawMessage, depth int) error {
	if depth >= maxSchemaDepth {
		return fault.New(fault.Corrupt, "schema %d: types are nested more than %d deep", c.schema, maxSchemaDepth)
	}
	return c.typ(name, raw, depth+1)
}

var (
	plainType = regexp.MustCompile(`^(boolean|int|long|float|double|date|time|timestamp|timestamptz|timestamp_ns|timestamptz_ns|string|uuid|binary|unknown|variant|(geometry|geography)(\(.*\))?)$`)
	decimal   = regexp.MustCompile(`^decimal\(\s*(-?\d{1,9})\s*,\s*(-?\d{1,9})\s*\)$`)
	fixed     = regexp.MustCompile(`^fixed\[\s*(-?\d{1,10})\s*\]$`)
)

func (c *schemaCheck) primitive(name, t string) error {
	if plainType.MatchString(t) {
		return nil
	}
	if m := decimal.FindStringSubmatch(t); m != nil {
		precision, _ := strconv.Atoi(m[1])
		if precision < 1 || precision > 38 {
			return fault.New(fault.Corrupt, "schema %d: column %s: decimal precision %d is not between 1 and 38", c.schema, name, precision)
		}
		return nil
	}
	if m := fixed.FindStringSubmatch(t); m != nil {
		if n, err := strconv.ParseInt(m[1], 10, 32); err != nil || n < 1 {
			return fault.New(fault.Corrupt, "schema %d: column %s: fixed length %s is not valid", c.schema, name, m[1])
		}
		return nil
	}
	return fault.New(fault.Corrupt, "schema %d: column %s: type %s is unknown", c.schema, name, t)
}

// of says in which struct something is; at the top there is nothing to say.
func of(prefix string) string {
	if prefix == "" {
		return ""
	}
	return "of " + strings.TrimSuffix(prefix, ".") + " "
}
