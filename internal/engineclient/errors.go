package engineclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// typedErrors turns refusals into *api.Error.
type typedErrors struct{ next Doer }

func (t typedErrors) Do(ctx context.Context, req Request) (Response, error) {
	answer, err := t.next.Do(ctx, req)
	if err != nil {
		return answer, err
	}
	if answer.Status >= 400 {
		return answer, refusal(req, answer)
	}
	return answer, nil
}

// refusal reads either published error form; what is neither is quoted.
func refusal(req Request, a Response) *api.Error {
	var body api.ErrorBody
	e := &api.Error{Status: a.Status}
	if json.Unmarshal(a.Body, &body) == nil {
		e.Message, e.Type = body.Error.Message, body.Error.Type
		if e.Message == "" {
			e.Message = body.Message
		}
		if body.Error.Param != nil {
			e.Param = *body.Error.Param
		}
		if body.Error.Code != nil {
			e.Code = *body.Error.Code
		}
	}
	if e.Message == "" {
		e.Message = fmt.Sprintf("%s %s answered %d %s: %s", req.Method, req.Path, a.Status, http.StatusText(a.Status), excerpt(a.Body))
	}
	return e
}

// NotJSON is a success whose body is not the API's JSON, as of a web page.
type NotJSON struct {
	Request string // method and path
	Status  int
	Excerpt string // of the body
	Err     error
}

func (n *NotJSON) Error() string {
	return fmt.Sprintf("%s answered %d with something that is not the API's JSON (%v): %s", n.Request, n.Status, n.Err, n.Excerpt)
}

func (n *NotJSON) Unwrap() error { return n.Err }

func excerpt(b []byte) string {
	s := strings.Join(strings.Fields(string(b)), " ")
	if s == "" {
		return "(empty body)"
	}
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return s
}

// IsNotFound reports whether an engine said that a thing does not exist. An answer
// of 404 that is not in the API's error form (a proxy's page, a wrong base URL)
// says nothing about the thing.
func IsNotFound(err error) bool {
	var e *api.Error
	if !errors.As(err, &e) || e.Status != http.StatusNotFound {
		return false
	}
	return e.Type != "" || e.Code == api.CodeNotFound
}

// IsUnreachable reports whether no engine answered at all.
func IsUnreachable(err error) bool {
	var u *Unreachable
	return errors.As(err, &u)
}

// IsStale reports whether a call was refused because its etag is not the newest.
func IsStale(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Status == http.StatusConflict && e.Code == api.CodeAborted
}

// IsConflict reports whether a call was refused with 409: a lock, a name that is
// taken, or a stale etag.
func IsConflict(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Status == http.StatusConflict
}

// lost reports whether a call may have been carried out though no answer said so.
func lost(err error) bool {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable || e.Status == http.StatusGatewayTimeout
	}
	return IsUnreachable(err)
}
