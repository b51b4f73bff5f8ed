package credentials

import "context"

type principalKey struct{}

// WithPrincipal says on whose behalf what follows is done. Rights are asked for, and what they gave is kept, under this name.
func WithPrincipal(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, principalKey{}, name)
}

// Principal is the name that WithPrincipal gave, empty for the process itself.
func Principal(ctx context.Context) string {
	name, _ := ctx.Value(principalKey{}).(string)
	return name
}
