// Package version is the subcommand that tells what was built, and the one place that knows it.
//
// It is safe for concurrent use.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Number is the release.
const Number = "0.1.0"

// String is the release with the commit it was built from, where the build knows it.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Number
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return Number + "+" + s.Value[:12]
		}
	}
	return Number
}

// Command is `skua version`.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "skua %s (%s, %s/%s)\n", String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
