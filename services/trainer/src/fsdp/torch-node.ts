/**
 * A node beside the trainer's own: its facts, and the ranks that it was ordered to start.
 *
 * Its program is torch/hone_fsdp/node.py; the connection to it belongs to {@link TorchNodes}.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { NodeOrderSchema, StartRanksSchema } from "@hone/proto-gen/training";

/** What a node reports about itself. */
export interface NodeFacts {
  /** 1 or more: the trainer's own is 0. */
  readonly index: number;
  readonly torchVersion: string;
  /** 0 = none. */
  readonly gpus: number;
}

/** How a group's ranks on a node ended. */
export interface RanksEnd {
  readonly reason: string;
  /** The last lines that they printed. */
  readonly lines: readonly string[];
}

export type OrderKind = NonNullable<MessageInitShape<typeof NodeOrderSchema>["kind"]>;

/** Which ranks a node starts. */
export type RanksOrder = MessageInitShape<typeof StartRanksSchema> & { readonly group: string };

interface OpenGroup {
  readonly onEnd: (end: RanksEnd) => void;
  readonly ended: PromiseWithResolvers<void>;
}

export class TorchNode {
  readonly facts: NodeFacts;
  readonly #send: (kind: OrderKind) => void;
  readonly #groups = new Map<string, OpenGroup>();
  #lost: string | undefined;

  /** @param send sends an order to the node, and does nothing when the connection is gone. */
  constructor(facts: NodeFacts, send: (kind: OrderKind) => void) {
    this.facts = facts;
    this.#send = send;
  }

  /** @param onEnd is called once, when no rank of the group is left on the node, or when the node is lost. */
  startRanks(order: RanksOrder, onEnd: (end: RanksEnd) => void): void {
    if (this.#lost !== undefined) {
      onEnd({ reason: this.#lost, lines: [] });
      return;
    }
    this.#groups.set(order.group, { onEnd, ended: Promise.withResolvers() });
    this.#send({ case: "startRanks", value: order });
  }

  /** Ends a group's ranks; resolves when none is left, or when the node is gone. */
  async endRanks(group: string): Promise<void> {
    const open = this.#groups.get(group);
    if (open === undefined) return;
    this.#send({ case: "endRanks", value: { group } });
    await open.ended.promise;
  }

  /** Handles the node's report that a group's ranks have ended. */
  ranksEnded(group: string, end: RanksEnd): void {
    const open = this.#groups.get(group);
    if (open === undefined) return;
    this.#groups.delete(group);
    open.onEnd(end);
    open.ended.resolve();
  }

  /** Handles the loss of the node and of every group's ranks on it: its program ends them, or ended with them. */
  lose(reason: string): void {
    this.#lost = reason;
    for (const group of [...this.#groups.keys()]) this.ranksEnded(group, { reason, lines: [] });
  }
}
