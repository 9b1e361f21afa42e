package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// portTries bounds how often a port is asked for, and how often a clash is
// forgiven.
const portTries = 5

// systemPort asks the system for a free port.
func systemPort() (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err = errors.Join(err, l.Close()); err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}

// portTaken reports whether somebody listens on the port.
func portTaken(port int) bool {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", address(port))
	if err != nil {
		return true
	}
	_ = l.Close()
	return false
}

// reservePort picks a port that no other replica has been given. The caller gives
// it back by releasePort.
func (f *Fleet) reservePort(replica string) (int, error) {
	for range portTries {
		port, err := f.cfg.PickPort()
		if err != nil {
			return 0, fmt.Errorf("no free port: %w", err)
		}
		if f.holdPort(port, replica) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port in %d tries", portTries)
}

// holdPort notes the port; false when another replica has it.
func (f *Fleet) holdPort(port int, replica string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if holder, held := f.ports[port]; held && holder != replica {
		return false
	}
	f.ports[port] = replica
	return true
}

// releasePort gives it back.
func (f *Fleet) releasePort(port int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.ports, port)
}
