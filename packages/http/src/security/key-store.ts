import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import { HttpError } from '@sparrow-search/endpoints';
import { Turns } from '@sparrow-search/engine';

import { diskRefusal, readIfPresent, replaceFile } from '../durable-file.js';
import type { Logger } from '../log.js';
import { sealPieces } from '../sealed-file.js';
import { LOSS, parseFile, parseSnapshot, textsOf } from './key-file.js';
import { KeyList } from './key-list.js';
import { type StoredText, textInFile } from '../stored-text.js';
import { OWNER_ROLES, type Roles } from './roles.js';
import { unauthenticated } from './unauthenticated.js';

/** How long a key is kept after its end, so that one can look it up: as long as in Elasticsearch. */
const RETENTION_MS = 7 * 86_400_000;

/** Most bytes of all keys together: each change writes them all. */
const MOST_BYTES = 32 * 1024 * 1024;

/** The share of the room that there is for keys which others than the owner key make: it can always make one. */
const SHARE_OF_OTHERS = 0.9;

/** How often keys are looked at that other servers change, and how often a change is tried that they come in between of. */
const LOOK_MS = 1_000;
const TRIES = 10;

/** How long to wait before the file is written again that a disk has refused, in milliseconds: at first, and at most. */
const PUT_BACK_MS = 1_000;
const MOST_PUT_BACK_MS = 30_000;

/** The user that every key belongs to: keys are Sparrow's only identities. */
export const OWNER = 'owner';

/** One API key as it is stored. The secret itself is not. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  /** SHA-256 of the secret, hex. A fast hash suffices: secrets are 128 random bits or more, never chosen by people. */
  readonly hash: string;
  /** The key that may do everything, and that made the others. */
  readonly owner: boolean;
  readonly username: string;
  readonly creation: number;
  readonly expiration?: number;
  readonly invalidated: boolean;
  readonly invalidation?: number;
  readonly roles: Roles;
  /** The roles of the keys that this one was made by, beyond which it may do nothing. Absent: an owner key made it. */
  readonly limitedBy?: readonly Roles[] | undefined;
  /** The id of the key that made this one, or the one that made that, and so on: the first that an owner key made. Absent: this is it. */
  readonly root?: string | undefined;
  /** Role descriptors as they were sent, which is how they are shown again. */
  readonly roleDescriptors: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * The id of the key that another one's share of something is counted for: who may make keys would have as many shares as they like
 * otherwise.
 */
export function rootOf({ root, id }: Pick<ApiKey, 'root' | 'id'>): string {
  return root ?? id;
}

/** Why credentials are those of no valid key. */
export type KeyProblem = 'unknown key' | 'wrong secret' | 'revoked' | 'expired';

/** A secret that is shown once, with the form that goes into the `Authorization` header. */
export interface IssuedKey {
  readonly key: ApiKey;
  readonly secret: string;
  /** base64 of `id:secret`. */
  readonly encoded: string;
}

export interface NewKey {
  readonly name: string;
  readonly expiration?: number;
  readonly roles: Roles;
  readonly limitedBy?: readonly Roles[] | undefined;
  readonly root?: string | undefined;
  readonly roleDescriptors: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** What an update gives a key; what is absent stays. */
export interface KeyChange {
  readonly roles?: Roles;
  /** Goes with `roles`: undefined takes the limits away. */
  readonly limitedBy?: readonly Roles[] | undefined;
  readonly roleDescriptors?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly expiration?: number;
}

/**
 * Changes `keys`, a copy of those `before` it.
 *
 * @returns what the caller learns of the change
 */
type Plan<T> = (keys: KeyList, before: KeyList) => T | Promise<T>;

/** When a change is made, for whom, and what keeps it from being begun. */
interface Asked {
  readonly now: number;
  readonly by?: ApiKey | undefined;
  readonly check?: (() => void) | undefined;
}

/** A change that waits. */
interface Change {
  /** Makes it of the keys as they are then; they themselves stay. */
  readonly make: (before: KeyList) => Promise<Made>;
  readonly reject: (error: unknown) => void;
}

/** The keys after a change, and what is to be called once they are written. */
interface Made {
  readonly after: KeyList;
  readonly done: () => void;
}

/** How much room there is for keys. */
export interface Room {
  readonly keys: number;
  readonly bytes: number;
}

/**
 * The API keys, in memory and in `security/api_keys.json` of the data directory, or where several servers have them in common. They guard whichever engine is behind the
 * server, so they live in front of it. Changes are made one at a time: on the disk first, then in memory. One that the disk
 * does not take is an error, and then nothing has changed. However many keys there are, a change leaves the event loop to others
 * every few milliseconds.
 */
export class KeyStore {
  readonly #text: StoredText;
  /** Replaced with every change, never changed. */
  #keys: KeyList;
  /** Secrets that have been verified against their hash, by the key as it was then: they need no hashing again. */
  readonly #verified = new WeakMap<ApiKey, Buffer>();
  readonly #room: Room;
  #changes: Promise<unknown> = Promise.resolve();
  /** The changes that are made, and written together, once those before them are. */
  readonly #waiting: Change[] = [];
  #refreshing: Promise<void> | undefined;
  /** Whether the file may hold a change that was refused. */
  #isUncertain = false;
  /** From then on the file may be another process's. */
  #isClosed = false;
  /** Set while the file waits to be written again. */
  #putsBack: NodeJS.Timeout | undefined;

  private constructor(text: StoredText, keys: readonly ApiKey[], room: Room) {
    this.#text = text;
    this.#keys = new KeyList(keys);
    this.#room = room;
  }

  /** @param kept where the keys are; absent: in the data directory */
  static async open(
    data: string,
    { keys = Infinity, bytes = MOST_BYTES }: Partial<Room> = {},
    kept: StoredText = textInFile(join(data, 'security', 'api_keys.json'), LOSS),
  ): Promise<KeyStore> {
    const text = await kept.read();
    return new KeyStore(kept, text === undefined ? [] : parseFile(kept.path, text), { keys, bytes });
  }

  /** Takes over what other servers change, from now on until the function that comes back is called. */
  follow(log: Logger): () => void {
    if (!this.#text.isShared) return () => undefined;
    const timer = setInterval(() => {
      this.refresh().catch((error: unknown) => {
        log.warn('the API keys in the cluster cannot be read', { error: String(error) });
      });
    }, LOOK_MS);
    return () => {
      clearInterval(timer);
    };
  }

  /** Whether a key that is not known here may be known elsewhere. */
  get isShared(): boolean {
    return this.#text.isShared;
  }

  /** Takes over what other servers have changed, if they have. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  async #refresh(): Promise<void> {
    if (await this.#text.isCurrent()) return;
    const read = this.#changes.then(() => this.#reload());
    this.#changes = read.catch(() => undefined);
    await read;
  }

  /** Keys that are as they were stay the same objects, which requests under way are told by. */
  async #reload(): Promise<void> {
    const text = await this.#text.read();
    const keys = text === undefined ? [] : parseFile(this.#text.path, text);
    const turns = new Turns();
    const list = new KeyList();
    for (const key of keys) {
      const before = this.#keys.get(key.id);
      list.set(before !== undefined && JSON.stringify(before) === JSON.stringify(key) ? before : key);
      if (turns.isOver) await turns.next();
    }
    this.#keys = list;
  }

  /** Where the owner key is left for tools on the same machine, readable by this user only. */
  static ownerKeyFile(data: string): string {
    return join(data, 'owner.key');
  }

  all(): readonly ApiKey[] {
    return [...this.#keys.values()];
  }

  get(id: string): ApiKey | undefined {
    return this.#keys.get(id);
  }

  /** The owner key that is in force, if one was made. */
  owner(): ApiKey | undefined {
    return ownerAmong(this.#keys);
  }

  /**
   * The key that `id` and `secret` belong to, if it is valid at `now`. Takes the same time whether the id is unknown or the
   * secret is wrong.
   */
  verify(id: string, secret: string, now: number): ApiKey | undefined {
    const found = this.check(id, secret, now);
    return typeof found === 'string' ? undefined : found;
  }

  /** As {@link verify}, with the reason why there is no such key: for the log, and for nobody else. */
  check(id: string, secret: string, now: number): ApiKey | KeyProblem {
    const key = this.#keys.get(id);
    const given = Buffer.from(secret);
    const known = key === undefined ? undefined : this.#verified.get(key);
    if (known?.length !== given.length || !timingSafeEqual(known, given)) {
      const expected = Buffer.from(key?.hash ?? sha256(''), 'hex');
      if (!timingSafeEqual(expected, Buffer.from(sha256(secret), 'hex'))) {
        return key === undefined ? 'unknown key' : 'wrong secret';
      }
    }
    if (key === undefined) return 'unknown key';
    if (!holds(key, now)) return key.invalidated ? 'revoked' : 'expired';
    if (known === undefined) this.#verified.set(key, given);
    return key;
  }

  /**
   * What has become of a key that was verified before: another request may have ended it meanwhile, or given it other rights.
   * Undefined if it holds no more at `now`.
   */
  current({ id, hash }: ApiKey, now: number): ApiKey | undefined {
    const key = this.#keys.get(id);
    return key?.hash === hash && holds(key, now) ? key : undefined;
  }

  /**
   * @param by the key that asks for it; absent: the server itself
   * @param check throws when it is not to be begun any more
   * @throws {HttpError} 400 when there is no room for it, 401 when `by` does not hold any longer
   */
  async create(fields: NewKey, now: number, by?: ApiKey, check?: () => void): Promise<IssuedKey> {
    const issued = issue(newKeyId(), randomId(), { ...fields, owner: false }, now);
    const byOwner = fields.limitedBy === undefined;
    await this.#change(
      (keys, before) => {
        keys.set(issued.key);
        this.#fit(keys, before, byOwner, now);
      },
      { now, by, check },
    );
    return issued;
  }

  /**
   * Makes an owner key if there is no owner key yet, and leaves it in its file. Of servers that have their keys in common and are started
   * at the same time, one does.
   *
   * @returns undefined where there is one, also where another server has made it just now
   */
  async ensureOwner(data: string, now: number): Promise<IssuedKey | undefined> {
    if (this.owner() !== undefined) return undefined;
    return this.#makeOwner(data, now, (keys) => ownerAmong(keys) === undefined);
  }

  /** Makes a new owner key, whether there is one or not, and leaves it in its file. */
  async createOwner(data: string, now: number): Promise<IssuedKey> {
    const issued = await this.#makeOwner(data, now, () => true);
    if (issued === undefined) throw new Error('no owner key was made');
    return issued;
  }

  /** @param isWanted looks at the keys as they are when the turn of the new one comes */
  async #makeOwner(data: string, now: number, isWanted: (keys: KeyList) => boolean): Promise<IssuedKey | undefined> {
    const issued = issue(newKeyId(), randomId(), ownerFields(), now);
    // The file first: a key in force that nobody knows would lock everybody out.
    await replaceFile(KeyStore.ownerKeyFile(data), `${issued.encoded}\n`);
    const isMade = await this.#change(
      (keys) => {
        const wanted = isWanted(keys);
        if (wanted) keys.set(issued.key);
        return wanted;
      },
      { now },
    );
    if (isMade) return issued;
    await rm(KeyStore.ownerKeyFile(data), { force: true });
    return undefined;
  }

  /** Whether the owner key in force is the one in the file of the data directory. */
  async isOwnerIn(data: string, now: number): Promise<boolean> {
    const encoded = (await readIfPresent(KeyStore.ownerKeyFile(data), LOSS))?.trim() ?? '';
    const given = decodeKey(encoded);
    return given !== undefined && this.verify(given.id, given.secret, now)?.owner === true;
  }

  /**
   * Makes `id:secret` the owner key in place of the one before. Nothing is written if it is already, also where another server made
   * it so since this one looked: a key written anew is another key to requests under way.
   *
   * @param replaces whether it may take the place of another owner key
   * @returns whether it is the owner key now
   */
  async setOwner(data: string, id: string, secret: string, now: number, replaces: boolean): Promise<boolean> {
    const isSet = await this.#change(
      (keys) => {
        const current = ownerAmong(keys);
        if (current?.id === id && current.hash === sha256(secret)) return true;
        if (current !== undefined && !replaces) return false;
        if (current !== undefined) keys.delete(current.id);
        keys.set(issue(id, secret, ownerFields(), now).key);
        return true;
      },
      { now },
    );
    // The file held the key before; the person who sets the key keeps it.
    if (isSet) await rm(KeyStore.ownerKeyFile(data), { force: true });
    return isSet;
  }

  /**
   * Invalidates keys; says which were valid until now.
   *
   * @param by the key that asks for it; absent: the server itself
   * @param check throws when it is not to be begun any more
   * @throws {HttpError} 401 when `by` does not hold any longer
   */
  async invalidate(ids: readonly string[], now: number, by?: ApiKey, check?: () => void): Promise<readonly string[]> {
    return this.#change(
      async (keys) => {
        const ended: string[] = [];
        const turns = new Turns();
        for (const id of ids) {
          if (turns.isOver) await turns.next();
          const key = keys.get(id);
          if (key === undefined || key.invalidated) continue;
          keys.set({ ...key, invalidated: true, invalidation: now });
          ended.push(id);
        }
        return ended;
      },
      { now, by, check },
    );
  }

  /**
   * Changes keys; says of which ones something was changed.
   *
   * @param by the key that asks for it; absent: the server itself
   * @param check throws when it is not to be begun any more
   * @throws {HttpError} 400 when there is no room for what they become, 401 when `by` does not hold any longer
   */
  async update(
    ids: readonly string[],
    change: KeyChange,
    now: number,
    by?: ApiKey,
    check?: () => void,
  ): Promise<readonly string[]> {
    return this.#change(
      async (keys, before) => {
        const updated: string[] = [];
        const turns = new Turns();
        for (const id of ids) {
          if (turns.isOver) await turns.next();
          const old = keys.get(id);
          // Another request may have ended it meanwhile.
          if (old === undefined || old.invalidated) continue;
          const key: ApiKey = { ...old, ...change };
          // Roles from the file and from a request differ in their prototypes, but not in their text.
          if (JSON.stringify(key) === JSON.stringify(old)) continue;
          keys.set(key);
          updated.push(id);
        }
        this.#fit(keys, before, by?.owner ?? true, now);
        return updated;
      },
      { now, by, check },
    );
  }

  /**
   * Takes over the keys of another store, out of a snapshot: those that still hold, under ids that no key here has, an
   * ended one that is still remembered included. Owner keys are not among them.
   *
   * @param text what the file of the other store says
   * @returns the ids of the keys that came
   * @throws {HttpError} 400 when the text cannot be read, or there is no room for the keys
   */
  async adopt(text: string, now: number): Promise<readonly string[]> {
    const others = parseSnapshot(text).filter((key) => !key.owner && endOf(key) > now);
    return this.#change(
      (keys, before) => {
        const adopted = others.filter(({ id }) => !keys.has(id));
        for (const key of adopted) keys.set(key);
        this.#fit(keys, before, true, now);
        return adopted.map(({ id }) => id);
      },
      { now },
    );
  }

  /**
   * Makes room for keys that became more or longer, if there is too little: those that have ended are forgotten, the first to end
   * first.
   *
   * @throws {HttpError} 400 when that is not enough
   */
  #fit(keys: KeyList, before: KeyList, byOwner: boolean, now: number): void {
    const share = byOwner ? 1 : SHARE_OF_OTHERS;
    const [most, mostBytes] = [Math.floor(this.#room.keys * share), Math.floor(this.#room.bytes * share)];
    const fits = (): boolean =>
      (keys.size <= most || keys.size <= before.size) && (keys.bytes <= mostBytes || keys.bytes <= before.bytes);
    if (fits()) return;
    const ended = [...keys.values()].filter((key) => endOf(key) <= now).sort((a, b) => endOf(a) - endOf(b));
    for (const key of ended) {
      keys.delete(key.id);
      if (fits()) return;
    }
    const [count, what, limit] =
      keys.size > most ? [keys.size, 'API keys', most] : [keys.bytes, 'bytes of API keys', mostBytes];
    throw new HttpError(
      'illegal_argument',
      `this server would have [${String(count)}] ${what}, it may have [${String(limit)}]: invalidate some that nobody needs`,
    );
  }

  /**
   * Makes a change once those before it are done, and forgets keys that ended long ago. Those that wait meanwhile are made one after the
   * other, and written together: each write is one of all keys.
   *
   * @param plan changes a copy of the keys as they are then
   * @param by the key whose rights `plan` was made with: changed meanwhile, it is not carried out
   * @param check is called when its turn has come, before it is begun; what it throws keeps it from that
   * @throws what `plan` throws; {HttpError} 429 when there is no space; why else the file cannot be written. The keys are then what they
   * were
   */
  #change<T>(plan: Plan<T>, { now, by, check }: Asked): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const make = async (before: KeyList): Promise<Made> => {
        check?.();
        if (by !== undefined && before.get(by.id) !== by) throw changedMeanwhile();
        const after = await copy(before, (key) => endOf(key) + RETENTION_MS > now);
        const result = await plan(after, before);
        const done = (): void => {
          resolve(result);
        };
        return { after, done };
      };
      this.#waiting.push({ make, reject });
      if (this.#waiting.length > 1) return;
      this.#changes = this.#changes.then(async () => {
        const changes = this.#waiting.splice(0);
        // The caller of a change learns of its failure; the next one is made all the same.
        await this.#makeAll(changes).catch((error: unknown) => {
          for (const change of changes) change.reject(error);
        });
      });
    });
  }

  /** Makes changes, of which those that fail leave the keys as they were for those after them. */
  async #makeAll(changes: readonly Change[], attempt = 1): Promise<void> {
    if (this.#text.isShared) await this.#reload();
    const before = this.#keys;
    let after = before;
    // Nobody learns of anything before it is written: what was refused because of another change may be possible without it.
    const outcomes: (() => void)[] = [];
    for (const change of changes) {
      try {
        const made = await change.make(after);
        after = made.after;
        outcomes.push(made.done);
      } catch (error) {
        outcomes.push(() => {
          change.reject(error);
        });
      }
    }
    if (await isSame(after, before)) {
      if (this.#isUncertain) await this.#putBack();
    } else {
      let isWritten: boolean;
      try {
        isWritten = await this.#write(after);
      } catch (error) {
        // The new file may be in place all the same, if only its folder could not be synced.
        if (!this.#text.isShared) {
          this.#isUncertain = true;
          await this.#putBack().catch(() => {
            this.#putBackLater();
          });
        }
        throw error;
      }
      if (!isWritten) {
        if (attempt < TRIES) return this.#makeAll(changes, attempt + 1);
        throw new HttpError('rejected', 'other servers keep changing the API keys: try again');
      }
      this.#keys = after;
      this.#isUncertain = false;
    }
    for (const tell of outcomes) tell();
  }

  /**
   * Writes the keys in force over a change that was refused, which the next start would take over.
   *
   * @throws why the file cannot be written
   */
  async #putBack(): Promise<void> {
    await this.#write(this.#keys);
    this.#isUncertain = false;
  }

  /** However many changes were refused, one attempt at a time. */
  #putBackLater(pause = PUT_BACK_MS): void {
    if (this.#isClosed || this.#putsBack !== undefined) return;
    const again = async (): Promise<void> => {
      if (this.#isUncertain) await this.#putBack();
    };
    this.#putsBack = setTimeout(() => {
      this.#changes = this.#changes.then(again).then(
        () => {
          this.#putsBack = undefined;
        },
        () => {
          this.#putsBack = undefined;
          this.#putBackLater(Math.min(2 * pause, MOST_PUT_BACK_MS));
        },
      );
    }, pause);
    this.#putsBack.unref();
  }

  /** Ends once changes under way are done, and writes the keys in force over one that was refused, which the next start would take over. */
  async close(log: Logger): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#putsBack);
    await this.#changes;
    if (!this.#isUncertain) return;
    await this.#putBack().catch((error: unknown) => {
      log.error('the file of the API keys may hold a change that was refused', { error: String(error) });
    });
  }

  async #write(keys: KeyList): Promise<boolean> {
    try {
      return await this.#text.replace(sealPieces(textsOf(keys)));
    } catch (error) {
      throw diskRefusal(error, 'API keys');
    }
  }
}

async function copy(keys: KeyList, isKept: (key: ApiKey) => boolean): Promise<KeyList> {
  const turns = new Turns();
  const list = new KeyList();
  for (const key of keys.values()) {
    if (isKept(key)) list.set(key);
    if (turns.isOver) await turns.next();
  }
  return list;
}

async function isSame(keys: KeyList, others: KeyList): Promise<boolean> {
  if (keys.size !== others.size) return false;
  const turns = new Turns();
  for (const key of keys.values()) {
    if (others.get(key.id) !== key) return false;
    if (turns.isOver) await turns.next();
  }
  return true;
}

function ownerAmong(keys: KeyList): ApiKey | undefined {
  for (const key of keys.values()) if (key.owner && !key.invalidated) return key;
  return undefined;
}

function changedMeanwhile(): HttpError {
  return unauthenticated('the API key of this request was changed or ended while it was carried out');
}

function holds({ invalidated, expiration = Infinity }: ApiKey, now: number): boolean {
  return !invalidated && expiration > now;
}

/** When a key ended or will end, in milliseconds since the epoch. */
function endOf({ invalidated, invalidation, expiration = Infinity, creation }: ApiKey): number {
  return invalidated ? Math.min(invalidation ?? creation, expiration) : expiration;
}

function issue(id: string, secret: string, fields: NewKey & { owner: boolean }, now: number): IssuedKey {
  const key: ApiKey = { id, username: OWNER, creation: now, invalidated: false, hash: sha256(secret), ...fields };
  return { key, secret, encoded: Buffer.from(`${id}:${secret}`).toString('base64') };
}

/** Splits the `encoded` form; undefined if it is not one. */
export function decodeKey(encoded: string): { id: string; secret: string } | undefined {
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(encoded)) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) return undefined;
  return { id: text.slice(0, colon), secret: text.slice(colon + 1) };
}

function ownerFields(): NewKey & { owner: boolean } {
  return { name: OWNER, owner: true, roles: OWNER_ROLES, roleDescriptors: {}, metadata: {} };
}

/** 22 characters, of which the first is a letter or a digit: one that begins with `-` would be an option of `sparrow key revoke`. */
export function newKeyId(random = randomId): string {
  const id = random();
  return /^[-_]/.test(id) ? newKeyId(random) : id;
}

/** 22 characters, 128 random bits. */
function randomId(): string {
  return randomBytes(16).toString('base64url');
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
