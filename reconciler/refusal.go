package reconciler

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// refusal is an answer to an ask that cannot be done.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refusef(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// settled reports whether an error is an answer about what was asked, which a repetition
// would not change, as opposed to none. A key that is refused and an address where no
// engine answers are none: they are told of the pass and not of the stack.
func settled(err error) bool {
	var r *refusal
	if errors.As(err, &r) {
		return true
	}
	return refusedBy(err) && !shutOut(err)
}

// refusedBy reports whether the engine has answered a call with no: nothing was changed.
func refusedBy(err error) bool {
	var refused *api.Error
	return errors.As(err, &refused) && refused.Status >= 400 && refused.Status < 500 &&
		refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusRequestTimeout && !engineclient.IsUnreachable(err)
}

// shutOut reports whether an error says that this is not the engine, or not with this key.
func shutOut(err error) bool {
	var wrong *engineclient.WrongAddress
	var notJSON *engineclient.NotJSON
	var refused *api.Error
	return errors.As(err, &wrong) || errors.As(err, &notJSON) || errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden)
}
