/**
 * The contexts of a large model's runs: slots for the sequences that decode, and slots for those that continue a cached context, with the
 * pool of all their rows.
 *
 * Where sums have no order, what sequences that decode have in common is in a slot of its own, which all of them read. Slots of each
 * kind have at most the pool's memory.
 */

import { CONTEXT_BUCKET, contextInputs, joinedInputs, type ModelSpec, sharedInputs } from "@hone/nn";
import type { SlotMemory } from "../cache/row-memory.ts";
import { RowPool } from "../cache/row-pool.ts";
import { contextRoom } from "../context-room.ts";
import type { RunItem } from "../policy-runner.ts";
import { ContextSlots, type SlotPlace } from "./context-slots.ts";
import type { FeedBuffers } from "./feed-buffers.ts";
import type { Prefix } from "./shared-prefix.ts";

/** The slots of a run, and the place of each of its items. */
export interface RunSlots {
  readonly slots: ContextSlots;
  readonly places: number[];
}

const NOTHING = new Float32Array(0);
/** The rows of a prefix that no sequence reads. */
const UNREAD_ROWS = 16;

export class SlotContexts {
  readonly layout = "slots";
  readonly pool: RowPool;
  readonly #spec: ModelSpec;
  readonly #decoding: ContextSlots;
  readonly #continuing: ContextSlots;
  /** The rows that several of the decoding sequences begin with. */
  readonly #shared: ContextSlots;
  readonly #isExact: boolean;
  readonly #unread: Float32Array;
  /** The sequences of the last decode run. */
  #decoders = 0;

  /**
   * @param pages most pages of the pool
   * @param isExact whether the sums of attention have no order.
   */
  constructor(spec: ModelSpec, pages: number, memory: SlotMemory, isExact: boolean) {
    this.#spec = spec;
    this.pool = new RowPool(spec, pages, memory.pool);
    this.#decoding = new ContextSlots(spec, memory.decoding, isExact);
    this.#continuing = new ContextSlots(spec, memory.continuing);
    this.#shared = new ContextSlots(spec, memory.shared);
    this.#isExact = isExact;
    this.#unread = new Float32Array(spec.numKeyValueHeads * UNREAD_ROWS * spec.headDim);
  }

  /** Brings the contexts of a run into slots and gives them to the graph. */
  feed(buffers: FeedBuffers, items: readonly RunItem[]): RunSlots {
    const isDecoding = items.every(({ count }) => count === 1);
    const slots = this.#slotsFor(items, isDecoding);
    const rooms = items.map((item) => contextRoom(item, this.#isExact, slots === this.#decoding));
    const found = slots.bring(items, rooms, this.pool);
    const places = found.map(({ place }) => place);
    const tokens = items.reduce((sum, { count }) => sum + count, 0);
    const tokenSequences = buffers.indices("tokenSequences", [tokens]);
    let token = 0;
    for (const [index, { count }] of items.entries()) {
      tokenSequences.fill(places[index]!, token, token + count);
      token += count;
    }
    const joinedTokens = buffers.indices("joinedTokens", [isDecoding ? 0 : tokens]);
    for (let i = 0; i < joinedTokens.length; i++) joinedTokens[i] = i;
    const shape = slots.shapeFor(items.length);
    const none = slots.shapeFor(items.length, 0);
    for (let layer = 0; layer < this.#spec.numLayers; layer++) {
      const kinds = [contextInputs(layer), joinedInputs(layer)] as const;
      const [read, unread] = isDecoding ? kinds : [kinds[1], kinds[0]];
      buffers.give(read.keys, slots.keys(layer, items.length), shape);
      buffers.give(read.values, slots.values(layer, items.length), shape);
      for (const name of Object.values(unread)) buffers.give(name, NOTHING, none);
    }
    if (this.#isExact) {
      const ownTokens = buffers.indices("ownTokens", [items.length, isDecoding ? 1 : 0]);
      if (isDecoding) for (const [index, place] of places.entries()) ownTokens[place] = index;
      this.#feedPrefixes(buffers, found);
    }
    return { slots, places };
  }

  dispose(): void {
    this.pool.dispose();
    for (const slots of [this.#decoding, this.#continuing, this.#shared]) slots.dispose();
  }

  #slotsFor(items: readonly RunItem[], isDecoding: boolean): ContextSlots {
    if (isDecoding) this.#decoders = items.length;
    // If only turns continue in this run, their contexts are still in the slots in which they decoded.
    const isNextTurn = items.length >= this.#decoders && items.every(({ start }) => start > 0);
    return isDecoding || isNextTurn ? this.#decoding : this.#continuing;
  }

  /** The inputs of shared-prefix.ts in @hone/nn. */
  #feedPrefixes(buffers: FeedBuffers, found: readonly SlotPlace[]): void {
    const sharing = new Map<Prefix, number[]>();
    for (const { place, prefix } of found)
      if (prefix !== undefined) sharing.set(prefix, [...(sharing.get(prefix) ?? []), place]);
    const prefixPlaces = this.#bringPrefixes(buffers, [...sharing.keys()]);
    const most = Math.max(1, ...[...sharing.values()].map(({ length }) => length));
    const prefixSequences = buffers.indices("prefixSequences", [Math.max(1, sharing.size), most]).fill(0);
    const perSequence = (name: string) => buffers.indices(name, [found.length]).fill(0);
    const sequencePrefixes = perSequence("sequencePrefixes");
    const sequenceMembers = perSequence("sequenceMembers");
    const sharedRows = perSequence("sharedRows");
    for (const [index, [{ start }, places]] of [...sharing].entries()) {
      const at = prefixPlaces[index]!;
      for (const [member, place] of places.entries()) {
        prefixSequences[at * most + member] = place;
        sequencePrefixes[place] = at;
        sequenceMembers[place] = member;
        sharedRows[place] = start;
      }
    }
  }

  /** @returns the place of each prefix. */
  #bringPrefixes(buffers: FeedBuffers, prefixes: readonly Prefix[]): number[] {
    const shared = this.#shared;
    const count = prefixes.length;
    const lengths = prefixes.map(({ start }) => Math.ceil(start / CONTEXT_BUCKET) * CONTEXT_BUCKET);
    const found = count > 0 ? shared.bring(prefixes, lengths, this.pool) : [];
    const shape = count > 0 ? shared.shapeFor(count) : shared.shapeFor(1, UNREAD_ROWS);
    for (let layer = 0; layer < this.#spec.numLayers; layer++) {
      const names = sharedInputs(layer);
      buffers.give(names.keys, count > 0 ? shared.keys(layer, count) : this.#unread, shape);
      buffers.give(names.values, count > 0 ? shared.values(layer, count) : this.#unread, shape);
    }
    return found.map(({ place }) => place);
  }
}
