// Loaded into a server with `--import`: on SIGUSR2 it writes how long its event loop was held at most since the last time.
import { monitorEventLoopDelay } from 'node:perf_hooks';

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
process.on('SIGUSR2', () => {
  process.stderr.write(
    `${JSON.stringify({ msg: 'loop', max_ms: delay.max / 1e6, p99_ms: delay.percentile(99) / 1e6 })}\n`,
  );
  delay.reset();
});
