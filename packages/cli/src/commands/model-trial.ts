import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';

import {
  type EngineRequest,
  type Json,
  NativeSearchEngine,
  Sparrow,
  embeddedModels,
  modelDirectories,
} from '@sparrow-search/engine';

import { CommandError } from '../errors.js';

interface Inferred {
  readonly inference_results: readonly { readonly predicted_value: unknown }[];
}

interface Config {
  readonly model_id: string;
  readonly metadata?: { readonly error?: string; readonly recognised?: Json };
  readonly inference_config?: Json;
  readonly model_size_bytes?: number;
}

/**
 * Tries a model directory without a server: opens an engine of its own on a folder that is removed afterwards, with this
 * model alone, and for a head with the models that it may be on.
 *
 * @throws {CommandError} for a directory that is no model, or whose model cannot be used
 */
export async function onModel<T>(directory: string, run: (trial: Trial) => Promise<T>): Promise<T> {
  const place = resolve(directory);
  const [found] = modelsIn(place);
  if (found !== place)
    throw new CommandError(
      `${directory} is not a model directory: it has no weights (model.safetensors or model.onnx)`,
    );
  let data = '';
  let opening: Promise<NativeSearchEngine> | undefined;
  let engine: NativeSearchEngine | undefined;
  const remove = (): void => {
    if (data !== '') rmSync(data, { recursive: true, force: true, maxRetries: 20 });
  };
  // A model may take minutes for what is under way, for which nobody waits who has pressed Ctrl-C. An engine that is
  // still being opened makes its folders again, and is waited for.
  const stop = (): void => {
    void Promise.race([opening?.catch(() => undefined), sleep(5000)]).then(() => {
      remove();
      process.exit(130);
    });
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    data = mkdtempSync(join(tmpdir(), 'sparrow-model-'));
    opening = NativeSearchEngine.open({
      data,
      models: [place, ...trunksOf(place)],
      deployAtStart: false,
      log: { level: 'silent', asText: true },
    });
    engine = await opening;
    const trial = new Trial(engine, basename(place));
    await trial.look();
    return await run(trial);
  } finally {
    await engine?.close();
    remove();
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

function modelsIn(place: string): readonly string[] {
  try {
    return modelDirectories(place);
  } catch (cause) {
    throw new CommandError((cause as Error).message, { cause });
  }
}

/** The members of `sparrow.json` in a model directory. Empty if there is no such file, or if it cannot be read: loading the model reports that. */
export function ownSettings(directory: string): {
  readonly trunk?: { readonly model?: string };
  readonly pooling?: unknown;
} {
  try {
    return (JSON.parse(readFileSync(join(directory, 'sparrow.json'), 'utf8')) ?? {}) as ReturnType<typeof ownSettings>;
  } catch {
    return {};
  }
}

/** Directories of which one holds the model that a head is on: that of its name beside it, and the embedded ones. None for a whole model. */
function trunksOf(directory: string): readonly string[] {
  const { trunk } = ownSettings(directory);
  if (trunk === undefined) return [];
  const beside = join(dirname(directory), basename(String(trunk.model)));
  return existsSync(beside) ? [beside, ...embeddedModels()] : embeddedModels();
}

/** An engine with the model that is tried, and the requests that are sent to it. */
export class Trial {
  readonly #engine: NativeSearchEngine;
  id: string;
  /** The typed interface over the engine. */
  readonly sparrow: Sparrow;
  /** What the model makes, as its configuration calls it: `text_expansion`, `text_embedding` or `text_similarity`. */
  kind = '';

  constructor(engine: NativeSearchEngine, id: string) {
    this.#engine = engine;
    this.sparrow = Sparrow.over(engine);
    this.id = id;
  }

  async ask<T>(op: EngineRequest['op'], more: Partial<EngineRequest> = {}, body?: unknown): Promise<T> {
    const request = { op, path: {}, query: {}, ...more };
    const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const reply = await this.#engine.execute(request, sent);
    const answer = JSON.parse(Buffer.from(reply.body).toString()) as T & { error?: { reason?: string } };
    if (reply.status >= 300) throw new CommandError(answer.error?.reason ?? `status ${String(reply.status)}`);
    return answer;
  }

  /**
   * Reads what the directory is.
   *
   * @throws {CommandError} when the model cannot be used
   */
  async look(): Promise<Config | undefined> {
    const { trained_model_configs: configs } = await this.ask<{ readonly trained_model_configs: readonly Config[] }>(
      'get_trained_models',
    );
    // Beside a head are the models that it may be on, of which one may be a head itself. A packaged model has another name than its folder:
    // that of the head that is packaged follows from it, and beside the others there is no other model.
    const called = (name: string): Config | undefined => configs.find(({ model_id }) => model_id === name);
    const config = called(this.id) ?? called(this.id.replace(/^model-/u, '.')) ?? configs[0];
    const problem = config?.metadata?.error;
    if (problem !== undefined) throw new CommandError(problem);
    this.id = config?.model_id ?? this.id;
    this.kind = Object.keys(config?.inference_config ?? {})[0] ?? '';
    return config;
  }

  /** What the model makes of texts that one question is asked about. */
  async infer(texts: readonly string[], question: string): Promise<readonly unknown[]> {
    const body = {
      docs: texts.map((text) => ({ text_field: text })),
      ...(this.kind === 'text_similarity' && { inference_config: { text_similarity: { text: question } } }),
    };
    const asked = { path: { model: this.id }, query: { timeout: '10m' } };
    const answer = await this.ask<Inferred>('infer_trained_model', asked, body);
    return answer.inference_results.map((one) => one.predicted_value);
  }
}
