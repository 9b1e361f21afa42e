package reconciler

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// The attributes of spans. They hold names of the configuration, addresses of the
// declaration, ids and words of ours: never a text of others, and never that of an error,
// which may quote one. The log has those.
const (
	ofRepository  = attribute.Key("sluice.repository")
	ofStack       = attribute.Key("sluice.stack")
	ofCommit      = attribute.Key("sluice.commit")
	ofRollout     = attribute.Key("sluice.rollout")
	ofVerb        = attribute.Key("sluice.verb")
	ofAddress     = attribute.Key("sluice.address")
	ofDestination = attribute.Key("sluice.destination")
	ofEvent       = attribute.Key("sluice.event")
	ofCall        = attribute.Key("sluice.forge.call")
	ofAccess      = attribute.Key("sluice.forge.access") // read or write
	ofPull        = attribute.Key("sluice.pull_request")
	ofError       = attribute.Key("error.type")
)

// longestAddress bounds an attribute, in characters: keys of for_each are anybody's.
const longestAddress = 200

// spans begins spans; the zero one begins none and costs nothing.
type spans struct{ tracer trace.Tracer }

// within does a part of the work in a span of its own.
func (s spans) within(ctx context.Context, name string, do func(context.Context) error, about ...attribute.KeyValue) error {
	if s.tracer == nil {
		return do(ctx)
	}
	ctx, span := s.tracer.Start(ctx, name, trace.WithAttributes(about...))
	defer span.End()
	err := do(ctx)
	if err != nil {
		kind := errorKind(err)
		span.SetAttributes(ofError.String(kind))
		span.SetStatus(codes.Error, kind)
	}
	return err
}

// errorKind is an error in a few words that are ours.
func errorKind(err error) string {
	var (
		engine      *api.Error
		gitLimited  *gitsource.Limited
		gone        *gitsource.Gone
		unverified  *gitsource.Unverified
		forgeLimit  *forge.Limited
		forgeRefuse *forge.Refused
		fenced      *journal.Fenced
		notRefused  *notify.Refused
	)
	switch {
	case errors.As(err, &engine):
		return fmt.Sprintf("engine %d", engine.Status)
	case engineclient.IsUnreachable(err):
		return "engine unreachable"
	case errors.As(err, &gitLimited):
		return "git limited"
	case errors.As(err, &gone):
		return "git commit gone"
	case errors.As(err, &unverified):
		return "git commit unverified"
	case errors.As(err, &forgeLimit):
		return "forge limited"
	case errors.As(err, &forgeRefuse):
		return "forge refused"
	case errors.As(err, &fenced):
		return "lease lost"
	case errors.As(err, &notRefused):
		return "notification refused"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "other"
}
