/**
 * The contexts of a large model's runs: slots for the sequences that decode, and slots for those that continue a cached context, with the
 * pool of all their rows.
 *
 * Where sums have no order, what sequences that decode have in common is in a slot of its own, which all of them read. Slots of each
 * kind have at most the pool's memory.
 */

import { KEY_BLOCK, type ModelSpec, type SlotKind } from "@hone/nn";
import type { EightBitType } from "@hone/tensor";
import { asRowData, RowLayout, type RowPart } from "../cache/row-layout.ts";
import type { SlotMemory } from "../cache/row-memory.ts";
import { RowPool } from "../cache/row-pool.ts";
import { contextRoom } from "../context-room.ts";
import type { RunItem } from "../policy-runner.ts";
import { ContextSlots, firstRow, type SlotPlace } from "./context-slots.ts";
import type { FeedBuffers } from "./feed-buffers.ts";
import type { Prefix } from "./shared-prefix.ts";
import { firstTokensOf } from "./token-order.ts";

/** The slots of a run, and the place of each of its items. */
export interface RunSlots {
  readonly slots: ContextSlots;
  readonly places: number[];
}

export class SlotContexts {
  readonly layout = "slots";
  readonly pool: RowPool;
  readonly #layout: RowLayout;
  /** The names of the inputs of each part. */
  readonly #inputs: Readonly<Record<SlotKind, readonly string[]>>;
  readonly #decoding: ContextSlots;
  readonly #continuing: ContextSlots;
  /** The rows that several of the decoding sequences begin with. */
  readonly #shared: ContextSlots;
  readonly #isExact: boolean;
  /** Zeros that are read, and masked, where a run needs no slots. */
  #unread = new Int32Array(0);
  /** The sequences of the last decode run. */
  #decoders = 0;

  /**
   * @param pages most pages of the pool
   * @param eightBits the type of whole numbers in eight bits, in which the sums of attention have no order. @default in float32
   */
  constructor(spec: ModelSpec, pages: number, memory: SlotMemory, eightBits?: EightBitType) {
    this.#isExact = eightBits !== undefined;
    const layout = new RowLayout(spec, eightBits);
    this.#layout = layout;
    this.#inputs = {
      context: layout.tensors("context"),
      joined: layout.tensors("joined"),
      shared: layout.tensors("shared"),
    };
    this.pool = new RowPool(layout, pages, memory.pool);
    this.#decoding = new ContextSlots(layout, memory.decoding, this.#isExact);
    this.#continuing = new ContextSlots(layout, memory.continuing);
    this.#shared = new ContextSlots(layout, memory.shared);
  }

  /** Brings the contexts of a run into slots and gives them to the graph. */
  feed(buffers: FeedBuffers, items: readonly RunItem[]): RunSlots {
    const slots = this.#slotsFor(items);
    const rooms = items.map((item) => contextRoom(item, this.#isExact, slots === this.#decoding));
    const found = slots.bring(items, rooms, this.pool);
    const places = found.map(({ place }) => place);
    if (this.#isExact) this.#feedEightBits(buffers, slots, items, found);
    else this.#feedFloats(buffers, slots, items, places);
    return { slots, places };
  }

  dispose(): void {
    this.pool.dispose();
    for (const slots of [this.#decoding, this.#continuing, this.#shared]) slots.dispose();
  }

  #slotsFor(items: readonly RunItem[]): ContextSlots {
    if (isDecoding(items)) this.#decoders = items.length;
    // If only turns continue in this run, their contexts are still in the slots in which they decoded.
    const isNextTurn = items.length >= this.#decoders && items.every(({ start }) => start > 0);
    return isDecoding(items) || isNextTurn ? this.#decoding : this.#continuing;
  }

  /** The inputs of slot-attention.ts in @hone/nn. */
  #feedFloats(
    buffers: FeedBuffers,
    slots: ContextSlots,
    items: readonly RunItem[],
    places: readonly number[],
  ): void {
    const tokens = items.reduce((sum, { count }) => sum + count, 0);
    const tokenSequences = buffers.indices("tokenSequences", [tokens]);
    const firstTokens = firstTokensOf(items, places);
    for (const [index, { count }] of items.entries()) {
      const first = firstTokens[index]!;
      tokenSequences.fill(places[index]!, first, first + count);
    }
    const isJoined = !isDecoding(items);
    const joinedTokens = buffers.indices("joinedTokens", [isJoined ? tokens : 0]);
    for (let i = 0; i < joinedTokens.length; i++) joinedTokens[i] = i;
    const [read, unread] = isJoined ? (["joined", "context"] as const) : (["context", "joined"] as const);
    this.#give(buffers, read, slots, items.length);
    this.#give(buffers, unread, undefined, items.length, 0);
  }

  /** The inputs of eight-bit-slots.ts in @hone/nn. */
  #feedEightBits(
    buffers: FeedBuffers,
    slots: ContextSlots,
    items: readonly RunItem[],
    found: readonly SlotPlace[],
  ): void {
    const contextRows = buffers.indices("contextRows", [items.length]);
    const contextEnds = buffers.indices("contextEnds", [items.length]);
    for (const [index, { start }] of items.entries()) {
      const { place, prefix } = found[index]!;
      contextRows[place] = start - firstRow(prefix);
      contextEnds[place] = start;
    }
    const isRead = contextRows.some((rows) => rows > 0);
    this.#give(buffers, "context", isRead ? slots : undefined, items.length);
    this.#feedPrefixes(buffers, found);
  }

  /** Gives the graph the slots of a kind. @param slots none if the run needs no rows @param unread the rows of each slot then */
  #give(
    buffers: FeedBuffers,
    kind: SlotKind,
    slots: ContextSlots | undefined,
    sequences: number,
    unread = 1,
  ): void {
    const { groups, parts } = this.#layout;
    const length = slots?.length ?? unread;
    const most = Math.max(...parts.map(({ words }) => sequences * unread * words));
    if (slots === undefined && this.#unread.length < most) this.#unread = new Int32Array(most);
    for (const [index, part] of parts.entries()) {
      const words = sequences * length * part.words;
      const data = slots?.read(index, sequences) ?? asRowData(part, this.#unread.subarray(0, words));
      const shape = [sequences, groups, ...rowShape(part, length, slots === undefined)];
      buffers.give(this.#inputs[kind][index]!, part.row.dtype, data, shape);
    }
  }

  /** The inputs of shared-prefix.ts in @hone/nn. */
  #feedPrefixes(buffers: FeedBuffers, found: readonly SlotPlace[]): void {
    const sharing = new Map<Prefix, number[]>();
    for (const { place, prefix } of found)
      if (prefix !== undefined) sharing.set(prefix, [...(sharing.get(prefix) ?? []), place]);
    const prefixPlaces = this.#bringPrefixes(buffers, [...sharing.keys()]);
    const members = Math.max(1, ...[...sharing.values()].map(({ length }) => length));
    const prefixSequences = buffers.indices("prefixSequences", [Math.max(1, sharing.size), members]).fill(0);
    const perSequence = (name: string) => buffers.indices(name, [found.length]).fill(0);
    const sequencePrefixes = perSequence("sequencePrefixes");
    const sequenceMembers = perSequence("sequenceMembers");
    const sharedRows = perSequence("sharedRows");
    for (const [index, [{ start }, places]] of [...sharing].entries()) {
      const at = prefixPlaces[index]!;
      for (const [member, place] of places.entries()) {
        prefixSequences[at * members + member] = place;
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
    const lengths = prefixes.map(({ start }) => Math.ceil(start / KEY_BLOCK) * KEY_BLOCK);
    const found = count > 0 ? shared.bring(prefixes, lengths, this.pool) : [];
    this.#give(buffers, "shared", count > 0 ? shared : undefined, Math.max(1, count));
    return found.map(({ place }) => place);
  }
}

function isDecoding(items: readonly RunItem[]): boolean {
  return items.every(({ count }) => count === 1);
}

/** The shape of a part's rows of one head, as the graph reads them. @param isOneBlock whether their keys are in a block of any size */
function rowShape({ row }: RowPart, length: number, isOneBlock: boolean): number[] {
  const width = isOneBlock ? length : KEY_BLOCK;
  switch (row.name) {
    case "KeyScales":
      return [length / width, 1, width];
    case "ValueScales":
      return [1, length];
    default:
      return row.isBlocked ? [length / width, row.width, width] : [length, row.width];
  }
}
