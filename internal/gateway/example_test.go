package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/gateway"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// A gateway on its own: one endpoint, all of whose traffic goes to one replica.
func Example() {
	replica := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer replica.Close()

	g := gateway.New(gateway.Config{})
	err := g.Apply(rollout.Route{
		EndpointID: "ep_1", Name: "acme/chat", Generation: 1, Salt: "ep_1",
		Members: []rollout.Member{{
			Deployment: "dep_1", Name: "acme/chat/blue", Model: "llama-3-8b", Weight: 1,
			Replicas: []rollout.Replica{{ID: "r1", State: rollout.ReplicaReady, Address: replica.Listener.Addr().String()}},
		}},
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Addr().String()+"/v1/completions",
		strings.NewReader(`{"model":"acme/chat","prompt":"hello"}`))
	if err != nil {
		panic(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		panic(err)
	}
	defer func() { _ = response.Body.Close() }()
	b, _ := io.ReadAll(response.Body)
	fmt.Println(response.StatusCode, response.Header.Get(gateway.HeaderDeployment), string(b))

	http.DefaultClient.CloseIdleConnections()
	fmt.Println(g.Shutdown(ctx), <-served)
	// Output:
	// 200 dep_1 {"model":"llama-3-8b","prompt":"hello"}
	// <nil> <nil>
}
