package rehearsal

import (
	"context"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

var update = flag.Bool("update", false, "rewrite what the scenarios expect; review the difference")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is an empty store in memory.
func disk(t testing.TB) *store.SQLite {
	t.Helper()
	d, err := store.OpenMemory(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}
