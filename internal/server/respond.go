package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the client is gone
}

// fail answers an error; what is not a refusal is logged and told as internal.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := asAPI(err)
	if e.Status >= http.StatusInternalServerError {
		s.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	writeError(w, e)
}

func asAPI(err error) *api.Error {
	var ours *api.Error
	if errors.As(err, &ours) {
		return ours
	}
	var refused *engine.Error
	if errors.As(err, &refused) {
		status, code := reaction(refused.Kind)
		return &api.Error{Status: status, Code: code, Message: refused.Message, Param: refused.Field}
	}
	if errors.Is(err, rollout.ErrFenced) {
		return &api.Error{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable, Message: err.Error() + "; nothing was changed, ask the other one"}
	}
	if errors.Is(err, rollout.ErrUnavailable) {
		return &api.Error{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable, Message: err.Error() + "; nothing was changed, try again once it can be written"}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &api.Error{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable, Message: "the engine did not answer in time; try again"}
	}
	return &api.Error{Status: http.StatusInternalServerError, Code: api.CodeInternal, Message: "internal error: " + err.Error()}
}

func reaction(k engine.Kind) (status int, code string) {
	switch k {
	case engine.Invalid:
		return http.StatusBadRequest, api.CodeInvalidArgument
	case engine.Precondition:
		return http.StatusBadRequest, api.CodeFailedPrecondition
	case engine.NotFound:
		return http.StatusNotFound, api.CodeNotFound
	case engine.Exists:
		return http.StatusConflict, api.CodeAlreadyExists
	case engine.Locked:
		return http.StatusConflict, api.CodeLocked
	case engine.Stale:
		return http.StatusConflict, api.CodeAborted
	case engine.Transient:
		return http.StatusServiceUnavailable, api.CodeUnavailable
	}
	return http.StatusInternalServerError, api.CodeInternal
}

// writeError sends both published forms of an error. A conflict that a repeat
// cannot mend says so, since the official clients would try three times.
func writeError(w http.ResponseWriter, e *api.Error) {
	kind := e.Type
	if kind == "" {
		kind = errorType(e.Status)
	}
	if e.Status == http.StatusConflict {
		w.Header().Set("x-should-retry", "false")
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="sluice"`)
	}
	if e.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	body := api.ErrorBody{Message: e.Message, Error: api.ErrorDetail{Message: e.Message, Type: kind, Code: &e.Code}}
	if e.Param != "" {
		body.Error.Param = &e.Param
	}
	writeJSON(w, e.Status, body)
}

func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status == http.StatusConflict:
		return "conflict_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}
