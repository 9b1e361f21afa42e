package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// open authenticates a request, checks its scope and project, and reads its body.
func (s *Server) open(ctx context.Context, w http.ResponseWriter, r *http.Request, scope rollout.Scope) (*call, error) {
	key, err := s.authenticate(ctx, r)
	if err != nil {
		return nil, err
	}
	if !key.Allows(scope) {
		return nil, &api.Error{Status: http.StatusForbidden, Code: api.CodePermissionDenied, Message: "key " + key.Name + " lacks the scope " + string(scope) + "; ask an administrator for a wider one"}
	}
	if p := r.PathValue("project"); p != "" && p != key.ProjectID {
		return nil, notFound("project", p)
	}
	c := &call{Request: r, key: key}
	c.body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, &api.Error{Status: http.StatusRequestEntityTooLarge, Code: api.CodeTooLarge, Message: "the request body is larger than 1 MiB"}
	}
	if err != nil {
		return nil, badRequest("", "the request body could not be read: "+err.Error())
	}
	return c, nil
}

func (s *Server) authenticate(ctx context.Context, r *http.Request) (rollout.Key, error) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if secret = strings.TrimSpace(secret); !strings.EqualFold(scheme, "bearer") || secret == "" {
		return rollout.Key{}, &api.Error{Status: http.StatusUnauthorized, Code: api.CodeUnauthenticated, Message: "no API key; send it as \"Authorization: Bearer KEY\""}
	}
	key, ok, err := s.Engine.Authenticate(ctx, secret)
	if err != nil {
		return key, err
	}
	if !ok {
		return key, &api.Error{Status: http.StatusUnauthorized, Code: api.CodeUnauthenticated, Message: "the API key is not valid; it may have been revoked"}
	}
	return key, nil
}

func notFound(what, id string) *api.Error {
	return &api.Error{Status: http.StatusNotFound, Code: api.CodeNotFound, Message: what + " " + id + " not found"}
}

func badRequest(param, message string) *api.Error {
	return &api.Error{Status: http.StatusBadRequest, Code: api.CodeInvalidArgument, Message: message, Param: param}
}
