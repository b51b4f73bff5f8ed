// Command make writes an authority, a server's certificate and its configuration into the folder it is given, and prints the variables that
// clients need to use them.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/skua-db/skua/integration/identity"
)

func main() {
	dir := os.Args[1]
	if err := identity.Make(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("export SKUA_CA=%q SKUA_USER=%q SKUA_PASSWORD=%q\n", filepath.Join(dir, identity.Authority), identity.User, identity.Password)
}
