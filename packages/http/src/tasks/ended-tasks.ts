import { EngineError } from '@sparrow-search/engine';

import { type Answer, json } from '../exchange/respond.js';
import { type Call, serving } from '../middleware/call.js';
import { rootOf } from '../security/key-store.js';

/** `GET /_ext/tasks`: the tasks that have ended, the latest first, each as `GET /_tasks/{task}` shows it. */
export async function endedTasks(call: Call): Promise<Answer> {
  const { engine, tasks, caller } = serving(call);
  const ended: unknown[] = [];
  for (const task of tasks?.ids ?? []) {
    try {
      const { body } = await engine.execute({ op: 'get_task', path: { task }, query: {} });
      const shown = JSON.parse(new TextDecoder().decode(body)) as { readonly completed?: boolean };
      if (shown.completed !== true) continue;
      // A hundred of them may have many failures each.
      call.hold.takeAnswer(body.length, rootOf(caller));
      ended.push(shown);
    } catch (error) {
      // Results go after a while.
      if (!(error instanceof EngineError) || error.status !== 404) throw error;
    }
  }
  return { ...json(200, { tasks: ended }), isHeld: true };
}
