package plan

func (n *Scan) Columns() []Column           { return n.Cols }
func (n *Values) Columns() []Column         { return n.Cols }
func (n *Filter) Columns() []Column         { return n.Input.Columns() }
func (n *Project) Columns() []Column        { return n.Cols }
func (n *Aggregate) Columns() []Column      { return n.Cols }
func (n *Join) Columns() []Column           { return n.Cols }
func (n *Sort) Columns() []Column           { return n.Input.Columns() }
func (n *Limit) Columns() []Column          { return n.Input.Columns() }
func (n *Union) Columns() []Column          { return n.Cols }
func (n *SetOp) Columns() []Column          { return n.Cols }
func (n *Window) Columns() []Column         { return n.Cols }
func (n *Unnest) Columns() []Column         { return n.Cols }
func (n *Spool) Columns() []Column          { return n.Input.Columns() }
func (n *OneRow) Columns() []Column         { return n.Input.Columns() }
func (n *WithSubqueries) Columns() []Column { return n.Input.Columns() }

func (n *Scan) Inputs() []Node      { return nil }
func (n *Values) Inputs() []Node    { return nil }
func (n *Filter) Inputs() []Node    { return []Node{n.Input} }
func (n *Project) Inputs() []Node   { return []Node{n.Input} }
func (n *Aggregate) Inputs() []Node { return []Node{n.Input} }
func (n *Join) Inputs() []Node      { return []Node{n.Left, n.Right} }
func (n *Sort) Inputs() []Node      { return []Node{n.Input} }
func (n *Limit) Inputs() []Node     { return []Node{n.Input} }
func (n *Union) Inputs() []Node     { return n.Nodes }
func (n *SetOp) Inputs() []Node     { return []Node{n.Left, n.Right} }
func (n *Window) Inputs() []Node    { return []Node{n.Input} }
func (n *Unnest) Inputs() []Node    { return []Node{n.Input} }
func (n *Spool) Inputs() []Node     { return []Node{n.Input} }
func (n *OneRow) Inputs() []Node    { return []Node{n.Input} }

// Inputs of WithSubqueries are the main plan, then the scalar plans.
func (n *WithSubqueries) Inputs() []Node {
	in := []Node{n.Input}
	for _, s := range n.Scalars {
		in = append(in, s.Plan)
	}
	return in
}

func (n *Scan) WithInputs([]Node) Node         { return n }
func (n *Values) WithInputs([]Node) Node       { return n }
func (n *Filter) WithInputs(in []Node) Node    { c := *n; c.Input = in[0]; return &c }
func (n *Project) WithInputs(in []Node) Node   { c := *n; c.Input = in[0]; return &c }
func (n *Aggregate) WithInputs(in []Node) Node { c := *n; c.Input = in[0]; return &c }
func (n *Join) WithInputs(in []Node) Node      { c := *n; c.Left, c.Right = in[0], in[1]; return &c }
func (n *Sort) WithInputs(in []Node) Node      { c := *n; c.Input = in[0]; return &c }
func (n *Limit) WithInputs(in []Node) Node     { c := *n; c.Input = in[0]; return &c }
func (n *Union) WithInputs(in []Node) Node     { c := *n; c.Nodes = in; return &c }
func (n *SetOp) WithInputs(in []Node) Node     { c := *n; c.Left, c.Right = in[0], in[1]; return &c }
func (n *Window) WithInputs(in []Node) Node    { c := *n; c.Input = in[0]; return &c }
func (n *Unnest) WithInputs(in []Node) Node    { c := *n; c.Input = in[0]; return &c }
func (n *Spool) WithInputs(in []Node) Node     { c := *n; c.Input = in[0]; return &c }
func (n *OneRow) WithInputs(in []Node) Node    { return &OneRow{in[0]} }

// WithInputs replaces the main plan and the scalar plans.
func (n *WithSubqueries) WithInputs(in []Node) Node {
	c := &WithSubqueries{Input: in[0], Scalars: append([]ScalarSubquery(nil), n.Scalars...)}
	for i := range c.Scalars {
		c.Scalars[i].Plan = in[i+1]
	}
	return c
}
