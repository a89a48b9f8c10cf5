/**
 * Models outside, behind OpenAI-compatible APIs: their keys, and how many may ask one of them at once.
 *
 * Run files name variables, and send what they hold to addresses of their own: no other variable than those meant for it
 * may be named.
 */

import { EndpointPolicy, type Policy } from "@hone/agents";
import { Room } from "@hone/core";
import type { ChatRenderer } from "@hone/tokenizer";
import { UnusableJobError } from "./errors.ts";
import type { JobEndpoint } from "./rollout-job.ts";

const KEY_PREFIX = "HONE_ENDPOINT_KEY";

export class Endpoints {
  readonly #keys: ReadonlyMap<string, string>;
  readonly #rooms = new Map<string, Room>();

  /** @param environment of which the variables of keys are read. */
  constructor(environment: Readonly<Record<string, string | undefined>>) {
    this.#keys = new Map(
      Object.entries(environment).flatMap(([name, value]) =>
        name.startsWith(KEY_PREFIX) && value ? [[name, value]] : [],
      ),
    );
  }

  /** Whether a variable holds a key. */
  hasKey(variable: string): boolean {
    return this.#keys.has(variable);
  }

  /** What a variable holds. */
  keyOf(variable: string): string | undefined {
    return this.#keys.get(variable);
  }

  /**
   * @param renderer of the conversation's record.
   * @throws {UnusableJobError} when the key is missing.
   */
  policyOf({ baseUrl, model, keyVariable, concurrency }: JobEndpoint, renderer: ChatRenderer): Policy {
    const key = keyVariable === undefined ? undefined : this.#keys.get(keyVariable);
    if (keyVariable !== undefined && key === undefined) {
      throw new UnusableJobError("the key of its endpoint must be set for agent-rollout", keyVariable);
    }
    const name = `${baseUrl} ${concurrency}`;
    const room = this.#rooms.get(name) ?? new Room(concurrency);
    this.#rooms.set(name, room);
    return new EndpointPolicy({ baseUrl, model, key, renderer, room });
  }
}
