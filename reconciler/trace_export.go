package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// openTraces makes the way of spans to a collector, if the standard environment variables
// of OpenTelemetry ask for one; nil if they do not. What they say of the address, headers,
// sampling and batches is read by the library itself.
func openTraces(ctx context.Context, o OpenOptions) (*sdktrace.TracerProvider, error) {
	if on, err := wantsTraces(o.Getenv); err != nil || !on {
		return nil, err
	}
	out, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "sluice-reconciler"), attribute.String("service.version", o.Version)),
		resource.WithFromEnv()) // last, so that OTEL_SERVICE_NAME goes first
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if o.Logger != nil {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { lostTraces(o.Logger, err) }))
	}
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(out), sdktrace.WithResource(about)), nil
}

// lostTraces tells that spans could not be sent. Nothing waits for them.
func lostTraces(log *slog.Logger, err error) {
	log.Warn("traces could not be sent; nothing else depends on them", "error", clip(render.Inert(err.Error()), 500))
}

// wantsTraces reports whether the environment asks for traces.
func wantsTraces(getenv func(string) string) (bool, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	address := cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return false, nil
	case "otlp":
	case "":
		if address == "" {
			return false, nil
		}
	default:
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: give otlp or none", exporter)
	}
	switch protocol := cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), getenv("OTEL_EXPORTER_OTLP_PROTOCOL")); protocol {
	case "", "http/protobuf":
		return true, nil
	default:
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: traces travel as http/protobuf here; give that, with the port of the collector's HTTP receiver (4318)", protocol)
	}
}

// flushWithin bounds how long an end waits for the spans that are not sent yet.
const flushWithin = 5 * time.Second

// endTraces sends what is left, within a bound, also when ctx has ended.
func endTraces(ctx context.Context, traces *sdktrace.TracerProvider, within time.Duration) error {
	if traces == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	return traces.Shutdown(ctx)
}
