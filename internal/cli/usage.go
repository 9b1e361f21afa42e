package cli

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// switchValues is what pflag writes behind each switch: they are given by their name.
const switchValues = "[=true|false]"

// withoutSwitchValues is a usage text that names a switch as people type it. What was
// taken out becomes spaces, so that the columns stand.
func withoutSwitchValues(usage func(*cobra.Command) error) func(*cobra.Command) error {
	return func(c *cobra.Command) error {
		var text bytes.Buffer
		out := c.OutOrStderr()
		c.SetOut(&text)
		err := usage(c)
		c.SetOut(out)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, strings.ReplaceAll(text.String(), switchValues, strings.Repeat(" ", len(switchValues))))
		return err
	}
}
