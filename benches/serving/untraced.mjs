// Loaded into the server before anything else (`node --import`): OpenTelemetry's API without a tracer provider.
import '@opentelemetry/api';
