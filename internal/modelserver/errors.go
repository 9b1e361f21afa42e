package modelserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// refusal is an answer that is not a completion, in the OpenAI error form.
type refusal struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Error is the message, so that a refusal travels as an error.
func (e *refusal) Error() string { return e.Message }

// invalid refuses a request for what one parameter says; 400.
func invalid(param, message string) *refusal {
	e := &refusal{status: http.StatusBadRequest, Message: message, Type: "invalid_request_error"}
	if param != "" {
		e.Param = &param
	}
	return e
}

// withCode adds the machine-readable code.
func (e *refusal) withCode(code string) *refusal {
	e.Code = &code
	return e
}

// notFound refuses a model that this server does not serve; 404.
func notFound(model string) *refusal {
	e := invalid("model", "The model `"+model+"` does not exist").withCode("model_not_found")
	e.status = http.StatusNotFound
	return e
}

// loading refuses while the cold start lasts; 503.
func loading(left time.Duration) *refusal {
	e := &refusal{status: http.StatusServiceUnavailable, Type: "server_error",
		Message: fmt.Sprintf("The model is loading; ready in %s", left.Round(time.Millisecond))}
	return e.withCode("service_unavailable")
}

// injected is the failure that Config.ErrorRate asks for; 500.
func injected() *refusal {
	e := &refusal{status: http.StatusInternalServerError, Type: "server_error",
		Message: "The server had an error while processing your request (declared error rate)"}
	return e.withCode("internal_error")
}

// refuse writes any error: a refusal as it is, everything else as 400.
func refuse(w http.ResponseWriter, err error) {
	var e *refusal
	if !errors.As(err, &e) {
		e = invalid("", err.Error())
	}
	if e.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, e.status, struct {
		Error *refusal `json:"error"`
	}{e})
}

// writeJSON writes one JSON body. A failed write means that the client is gone,
// which the request's context reports to those who care.
func writeJSON(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":{"message":"answer cannot be encoded","type":"server_error","param":null,"code":null}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}
