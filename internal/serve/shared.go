package serve

import (
	"fmt"
	"sync"

	"github.com/sluice-dev/terraform-provider-sluice/internal/modelserver"
)

// sharedServers runs one model server for all simulated replicas that would answer
// alike: tens of thousands of replicas then need neither a socket nor a goroutine each.
type sharedServers struct {
	mu      sync.Mutex
	running map[string]*sharedServer // by what they answer
}

type sharedServer struct {
	addr string
	stop func()
	uses int
}

// start gives the server that answers as c says, begun when there is none, and how to
// let go of it; the last one to do so ends it.
func (s *sharedServers) start(c modelserver.Config) (string, func(), error) {
	key := fmt.Sprintf("%+v", c)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.running[key]
	if one == nil {
		addr, stop, err := modelserver.Start(c)
		if err != nil {
			return "", nil, err
		}
		one = &sharedServer{addr: addr, stop: stop}
		s.running[key] = one
	}
	one.uses++
	return one.addr, sync.OnceFunc(func() { s.leave(key) }), nil
}

func (s *sharedServers) leave(key string) {
	s.mu.Lock()
	one := s.running[key]
	if one.uses--; one.uses > 0 {
		s.mu.Unlock()
		return
	}
	delete(s.running, key)
	s.mu.Unlock()
	one.stop()
}
