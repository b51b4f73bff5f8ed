package expr

// Function is a scalar function or operator of the registry.
type Function struct {
	Name string
}

// AggregateFunction is an aggregate function of the registry.
type AggregateFunction struct {
	Name string
}
