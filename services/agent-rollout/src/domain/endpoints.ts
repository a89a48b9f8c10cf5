/** Models outside, behind OpenAI-compatible APIs: their keys, and how many may ask one of them at once. */

import { EndpointPolicy, type Policy } from "@hone/agents";
import { BoundKeys } from "@hone/config";
import { Semaphore } from "@hone/core";
import type { ChatRenderer } from "@hone/tokenizer";
import type { JobEndpoint } from "./rollout-job.ts";

const KEY_PREFIX = "HONE_ENDPOINT_KEY";

export class Endpoints {
  /** Those of the variables HONE_ENDPOINT_KEY…, each for the hosts that it is bound to. */
  readonly keys: BoundKeys;
  readonly #slots = new Map<string, Semaphore>();

  /**
   * @param environment of which the variables of keys are read.
   * @throws {ConfigError} when a binding is no list of hosts.
   */
  constructor(environment: Readonly<Record<string, string | undefined>>) {
    this.keys = new BoundKeys(KEY_PREFIX, environment, "agent-rollout");
  }

  /**
   * @param renderer of the conversation's record.
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
