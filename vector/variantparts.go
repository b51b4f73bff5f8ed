package vector

// VariantParts is the part of a variant that is asked for: all of it, or some fields of an object. A reader that can tell them apart in a
// file may leave everything else out.
type VariantParts struct {
	Whole  bool
	Fields map[string]*VariantParts
}

// Field gives the part of an object's field, which it adds when it is not there.
func (p *VariantParts) Field(name string) *VariantParts {
	if p.Fields == nil {
		p.Fields = map[string]*VariantParts{}
	}
	f := p.Fields[name]
	if f == nil {
		f = &VariantParts{}
		p.Fields[name] = f
	}
	return f
}

// Partial reports whether something can be left out. A nil VariantParts asks for everything.
func (p *VariantParts) Partial() bool { return p != nil && !p.Whole && len(p.Fields) > 0 }
