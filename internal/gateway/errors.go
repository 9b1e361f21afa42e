package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// The types of OpenAI's error bodies.
const (
	typeInvalid = "invalid_request_error"
	typeServer  = "server_error"
)

// apiError is the body of an error as OpenAI's clients expect it.
type apiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// refusalError is a request that is answered with an error before it is routed.
type refusalError struct {
	status int
	body   apiError
}

func (e *refusalError) Error() string { return e.body.Message }

func invalid(status int, code, param, message string) *refusalError {
	e := &refusalError{status, apiError{Message: message, Type: typeInvalid, Code: code}}
	if param != "" {
		e.body.Param = &param
	}
	return e
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, e apiError) {
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	answer(w, status, struct {
		Error apiError `json:"error"`
	}{e})
}

// answer writes a JSON document.
func answer(w http.ResponseWriter, status int, document any) {
	b, err := json.Marshal(document)
	if err != nil { // only strings and numbers are passed
		panic(err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client may be gone; nothing is left to do for it
}

// InvalidRouteError refuses a route that could not be served as written. The old
// one keeps serving.
type InvalidRouteError struct {
	EndpointID string
	Reason     error
}

func (e *InvalidRouteError) Error() string {
	return fmt.Sprintf("gateway: route of endpoint %s refused: %v", e.EndpointID, e.Reason)
}

// Unwrap returns the reason.
func (e *InvalidRouteError) Unwrap() error { return e.Reason }

// StaleRouteError refuses a route that is older than the one being served, or of
// the same generation with other content. The one being served keeps serving.
type StaleRouteError struct {
	EndpointID       string
	Offered, Serving uint64 // generations
}

func (e *StaleRouteError) Error() string {
	if e.Offered == e.Serving {
		return fmt.Sprintf("gateway: endpoint %s already serves another route of generation %d", e.EndpointID, e.Serving)
	}
	return fmt.Sprintf("gateway: endpoint %s serves generation %d, refused the older %d", e.EndpointID, e.Serving, e.Offered)
}

// DrainError tells how many requests a replica still held when the time to drain
// it was over. It unwraps to the context's error.
type DrainError struct {
	Replica string
	Left    int
	Cause   error
}

func (e *DrainError) Error() string {
	return fmt.Sprintf("gateway: replica %s still holds %d requests: %v", e.Replica, e.Left, e.Cause)
}

// Unwrap returns the context's error.
func (e *DrainError) Unwrap() error { return e.Cause }
