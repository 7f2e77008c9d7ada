// Loaded into the server before anything else (`node --import`): a tracer provider that keeps finished spans in memory, as much as an
// exporter has of them before it sends a batch.
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

const exporter = {
  export(spans, done) {
    done({ code: 0 });
  },
  shutdown: () => Promise.resolve(),
};
new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] }).register();
