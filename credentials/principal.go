package credentials

import "context"

// Caller is on whose behalf something is done. Rights are asked for, and what they gave is kept, under its name.
type Caller struct {
	Name string
	// Roles are the groups that the caller's identity provider says it belongs to.
	Roles []string
	// Token is the bearer token that the caller showed, for services that take it in turn; empty when there was none.
	Token Secret
}

type callerKey struct{}

// WithCaller says on whose behalf what follows is done.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// WithPrincipal is WithCaller for a name alone.
func WithPrincipal(ctx context.Context, name string) context.Context {
	return WithCaller(ctx, Caller{Name: name})
}

// CallerOf is what WithCaller gave; the zero Caller is the process itself.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Principal is the caller's name, empty for the process itself.
func Principal(ctx context.Context) string { return CallerOf(ctx).Name }
