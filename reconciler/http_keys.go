package reconciler

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// caller is whose key a request has.
type caller struct {
	name string
	role forge.Role
}

// keyed lets a request through that has a key. Every key may read; what more it may, the
// permission table says. A query has nothing but the named parameters.
func (r *Reconciler) keyed(next func(http.ResponseWriter, *http.Request, caller), parameters ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		secret, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
		if !ok || secret == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "a key is needed: Authorization: Bearer KEY")
			return
		}
		who, err := r.whose(secret)
		switch {
		case err != nil:
			r.log.Error("the keys of the HTTP door cannot be read", "error", err)
			refuse(w, http.StatusServiceUnavailable, "the keys cannot be read")
		case who.name == "":
			refuse(w, http.StatusUnauthorized, "the key is not known")
		case who.role < forge.Read:
			refuse(w, http.StatusForbidden, fmt.Sprintf("key %s has role %s, which sees nothing", who.name, who.role))
		default:
			if err := asksOnly(req, parameters); err != nil {
				refuse(w, http.StatusBadRequest, err.Error())
				return
			}
			next(w, req, who)
		}
	}
}

// whose finds the key of a secret, in constant time for each.
func (r *Reconciler) whose(secret string) (caller, error) {
	given := sha256.Sum256([]byte(secret))
	var found caller
	for _, k := range r.config.HTTP.Keys {
		want, err := k.Secret.Read(r.getenv)
		if err != nil {
			return caller{}, fmt.Errorf("key %s: %w", k.Name, err)
		}
		sum := sha256.Sum256([]byte(want))
		if want != "" && subtle.ConstantTimeCompare(given[:], sum[:]) == 1 {
			found = caller{k.Name, k.Role}
		}
	}
	return found, nil
}

// permissions are the repository's table, or the defaults.
func (f *follower) permissions() Permissions {
	if f.config.Forge == nil {
		return f.config.Permissions
	}
	return f.config.Forge.Permissions
}
