package serve

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/modelserver"
)

func TestReplicasThatAnswerAlikeShareAServerUntilTheLastIsGone(t *testing.T) {
	s := &sharedServers{running: map[string]*sharedServer{}}
	first, leave, err := s.start(modelserver.Config{Model: "m/a"})
	require.NoError(t, err)
	second, leaveToo, err := s.start(modelserver.Config{Model: "m/a"})
	require.NoError(t, err)
	require.Equal(t, first, second)
	other, leaveOther, err := s.start(modelserver.Config{Model: "m/b"})
	require.NoError(t, err)
	require.NotEqual(t, first, other)
	leaveOther()

	answers := func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", first)
		return err == nil && conn.Close() == nil
	}
	leave()
	leave() // twice is once
	require.True(t, answers(), "one replica is left")
	leaveToo()
	require.False(t, answers())
	require.Empty(t, s.running)
}
