/** External models behind OpenAI-compatible APIs: their keys, and how many calls each may get at once. */

import { EndpointPolicy, type Policy } from "@hone/agents";
import { BoundKeys } from "@hone/config";
import { Semaphore } from "@hone/core";
import type { ChatRenderer } from "@hone/tokenizer";
import type { JobEndpoint } from "./rollout-job.ts";

const KEY_PREFIX = "HONE_ENDPOINT_KEY";

export class Endpoints {
  /** The keys in the variables HONE_ENDPOINT_KEY…, each for the hosts that it is bound to. */
  readonly keys: BoundKeys;
  readonly #slots = new Map<string, Semaphore>();

  /**
   * @param environment holds the variables of keys.
   * @throws {ConfigError} when the value of a `…_HOSTS` variable is not a list of hosts.
   */
  constructor(environment: Readonly<Record<string, string | undefined>>) {
    this.keys = new BoundKeys(KEY_PREFIX, environment, "agent-rollout");
  }

  /**
   * @param renderer the renderer of the conversation's record.
   * @throws {InvalidInputError} when the key is missing, or may not be sent there.
   */
  policyOf({ baseUrl, model, keyVariable, concurrency }: JobEndpoint, renderer: ChatRenderer): Policy {
    const key =
      keyVariable === undefined ? undefined : this.keys.keyFor(keyVariable, baseUrl, "endpoint.keyVariable");
    const name = `${baseUrl} ${concurrency}`;
    const slots = this.#slots.get(name) ?? new Semaphore(concurrency);
    this.#slots.set(name, slots);
    return new EndpointPolicy({ baseUrl, model, key, renderer, slots });
  }
}
