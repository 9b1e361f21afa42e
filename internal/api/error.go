package api

import "fmt"

// ErrorBody is what every refused call carries. Both published forms are sent:
// the nested envelope that the Python client reads and the top-level message that
// the TypeScript client reads.
type ErrorBody struct {
	Message string      `json:"message"`
	Error   ErrorDetail `json:"error"`
}

// ErrorDetail is the nested envelope.
type ErrorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Codes in ErrorDetail.Code.
const (
	CodeInvalidArgument    = "INVALID_ARGUMENT"    // 400: the request can never be right
	CodeFailedPrecondition = "FAILED_PRECONDITION" // 400: the state does not allow it
	CodeUnauthenticated    = "UNAUTHENTICATED"     // 401
	CodePermissionDenied   = "PERMISSION_DENIED"   // 403
	CodeNotFound           = "NOT_FOUND"           // 404
	CodeAlreadyExists      = "ALREADY_EXISTS"      // 409
	CodeLocked             = "LOCKED"              // 409: a rollout holds it
	CodeAborted            = "ABORTED"             // 409: stale etag
	CodeTooLarge           = "TOO_LARGE"           // 413
	CodeRateLimited        = "RATE_LIMITED"        // 429
	CodeInternal           = "INTERNAL"            // 500
	CodeUnavailable        = "UNAVAILABLE"         // 503: try again
)

// Error is a refused call as a Go error, on both sides of the wire.
type Error struct {
	Status  int    // HTTP status
	Code    string // one of the Code constants; empty when the peer sent none
	Type    string // for example invalid_request_error
	Message string // one or two sentences for a person, naming what to do
	Param   string // field path of the request, when one is at fault
}

func (e *Error) Error() string {
	if e.Param != "" {
		return fmt.Sprintf("%s (%s)", e.Message, e.Param)
	}
	return e.Message
}
