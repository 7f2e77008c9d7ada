// What a user gives to `node --import`: a tracer provider of OpenTelemetry, here with an exporter that writes a line for each span.
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';

const micros = ([seconds, nanos]) => seconds * 1e6 + nanos / 1e3;

const exporter = {
  export(spans, done) {
    for (const span of spans) {
      const { name, kind, attributes, parentSpanContext, status, startTime, endTime } = span;
      const { traceId, spanId } = span.spanContext();
      const [begun, ended] = [micros(startTime), micros(endTime)];
      const parent = parentSpanContext?.spanId;
      console.log(
        JSON.stringify({ span: name, kind, traceId, spanId, parent, attributes, status: status.code, begun, ended }),
      );
    }
    done({ code: 0 });
  },
  shutdown: () => Promise.resolve(),
};
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
