package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// defaultEngine is where "sluice serve" listens unless it is told otherwise.
const defaultEngine = "http://127.0.0.1:8420"

// checkAddress refuses an address of something that cannot be one, with the one that was meant.
func checkAddress(what, address string) error {
	if !strings.Contains(address, "://") {
		return usagef("%s address %q has no scheme: give http://%s", what, address, strings.TrimLeft(address, "/"))
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return usagef("%s address %q is not of the form http(s)://host[:port]", what, address)
	}
	return nil
}

// explained adds to an error what a person can do about it when the address, the
// project or the protocol is wrong. It asks the engine only after a failure.
func (a *app) explained(ctx context.Context, err error) error {
	var gone *engineclient.Unreachable
	var refused *api.Error
	switch {
	case errors.As(err, &gone):
		return fmt.Errorf("no engine answers at %s: %s. %s", gone.URL, cause(gone.Err), a.unreachableHint(gone))
	case errors.As(err, &refused) && refused.Status == http.StatusBadRequest && strings.Contains(refused.Message, "HTTP request to an HTTPS server"):
		return fmt.Errorf("the engine at %s speaks HTTPS: give its address with https://", a.connected.URL())
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound || isNotJSON(err):
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		var wrong *engineclient.WrongAddress
		if verdict := a.connected.Verify(ctx); errors.As(verdict, &wrong) {
			return wrong
		}
	}
	return err
}

func isNotJSON(err error) bool {
	var n *engineclient.NotJSON
	return errors.As(err, &n)
}

// cause is the innermost reason, without Go's chain of wrappers.
func cause(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	text := err.Error()
	if i := strings.LastIndex(text, "connect: "); i >= 0 {
		text = text[i+len("connect: "):]
	}
	return text
}

func (a *app) unreachableHint(gone *engineclient.Unreachable) string {
	switch text := gone.Err.Error(); {
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "It speaks plain HTTP: give its address with http://"
	case strings.Contains(text, "certificate"):
		return "Its certificate is not trusted by this machine"
	}
	hint := `Is "sluice serve" running, and is this the address that it printed as API?`
	if a.defaulted {
		hint += " This is the default: SLUICE_ENGINE_URL is not set"
	}
	return hint
}
