// The clients: each sends one operation after another until the server ends.
import { CLUSTER_OPERATIONS } from './cluster-operations.mjs';
import { DOCUMENT_OPERATIONS } from './document-operations.mjs';
import { INDEX_OPERATIONS, releaseFor } from './index-operations.mjs';
import { JOB_OPERATIONS, pollTask } from './job-operations.mjs';
import { Random } from './random.mjs';

const OPERATIONS = [...DOCUMENT_OPERATIONS, ...INDEX_OPERATIONS, ...JOB_OPERATIONS, ...CLUSTER_OPERATIONS];

/** The names that can be switched off. Without `deletionRaces` an index is deleted only while no other client works on it. */
export const OPERATION_NAMES = [...OPERATIONS.map(([, name]) => name), 'deletionRaces'];

export class Client {
  /** A background job that has not ended. */
  job;
  created = 0;

  /**
   * @param {number} number
   * @param {number} clients how many there are
   */
  constructor(number, clients, model) {
    Object.assign(this, { number, clients, model });
  }

  /** Works until the world stops. */
  async work(world, seed) {
    this.world = world;
    this.random = Random.of(seed, world.round, this.number);
    const operations = OPERATIONS.filter(([, name]) => !world.off.has(name)).map(([weight, , work]) => [weight, work]);
    while (!world.stopping) {
      if (this.job !== undefined && this.random.chance(0.1)) await pollTask(this);
      const release = this.random.chance(0.5) ? releaseFor(this) : undefined;
      const done = await (release ?? this.random.weighted(operations))(this);
      // What cannot be done now must not keep the others from running.
      if (!done) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
}
