// Says at the end whether anything of OpenTelemetry was loaded.
import { createRequire } from 'node:module';

const { cache } = createRequire(import.meta.url);
process.on('exit', () => {
  const loaded = Object.keys(cache).filter((path) => path.includes('opentelemetry'));
  console.log(JSON.stringify({ loaded }));
});
