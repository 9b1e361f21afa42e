package api

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurationsTravelAsSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"390s": 390 * time.Second, "0s": 0, "0.5s": 500 * time.Millisecond, "600.000000001s": 600*time.Second + 1,
	} {
		got, err := ParseDuration(text)
		require.NoError(t, err, text)
		require.InDelta(t, float64(want), float64(got), 100, text)
	}
	for _, bad := range []string{"10m", "", "s", "1h", "300", "1e3s", "NaNs", "5 s", "--1s", "1.2.3s", "99999999999999s"} {
		_, err := ParseDuration(bad)
		require.Error(t, err, bad)
	}
	out, err := json.Marshal(Duration(390 * time.Second))
	require.NoError(t, err)
	require.JSONEq(t, `"390s"`, string(out))
}
