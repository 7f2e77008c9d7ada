// Loaded into the server before anything else (`node --import`): on SIGUSR2 it says, as a line of JSON, how late the event loop
// came since the last time it was asked.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import process from 'node:process';

const histogram = monitorEventLoopDelay({ resolution: 5 });
histogram.enable();

process.on('SIGUSR2', () => {
  const ms = (nanoseconds) => Math.round(nanoseconds / 1000) / 1000;
  // What the timer waits on purpose is no delay.
  const over = (value) => Math.max(0, ms(value) - 5);
  const line = {
    msg: 'event loop',
    delayMs: {
      p50: over(histogram.percentile(50)),
      p99: over(histogram.percentile(99)),
      max: over(histogram.max),
    },
  };
  histogram.reset();
  process.stderr.write(`${JSON.stringify(line)}\n`);
});
