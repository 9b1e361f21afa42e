package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// newServer makes the server in front. It has no timeout over a whole request or
// answer, which would kill a stream that is silent between two tokens; each
// phase has its own (see Config).
func newServer(g *Gateway) *http.Server {
	return &http.Server{
		Handler:           g,
		ConnContext:       withFraming,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
}

// Serve accepts requests until Shutdown, after which it returns nil.
func (g *Gateway) Serve(l net.Listener) error {
	if err := g.server.Serve(watchedListener{l}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting and waits for the requests in flight. When ctx ends
// first it cuts them off and returns the context's error. Either way the idle
// connections to the replicas are closed.
func (g *Gateway) Shutdown(ctx context.Context) error {
	g.stopping.Store(true)
	err := g.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, g.server.Close())
	}
	g.Close()
	return err
}

// Close closes the idle connections to the replicas and keeps none from now on.
// It is for a gateway that is mounted in another server; Shutdown includes it.
func (g *Gateway) Close() {
	g.stopping.Store(true)
	g.applying.Lock()
	defer g.applying.Unlock()
	for _, p := range g.pools {
		p.close()
	}
}
