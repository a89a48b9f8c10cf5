/**
 * A game for two: from a pile of counters each player takes 1, 2 or 3 in turn, and whoever takes the last one wins.
 *
 * The row says how many counters there are, which roles play, and which of them begins. A player is shown the pile and answers
 * with a number; an answer that is no legal move loses. Each move is a conversation of its own, as the pile says everything.
 *
 * The winner's role earns 1 and the loser's 0. What the run file says of the roles decides who answers for them: two policies
 * that learn against each other, or one that plays against its earlier versions.
 */

import { type AgentRollout, defineAgent } from "@hone/agents";
import { HumanMessage } from "@langchain/core/messages";
import { z } from "zod";

const MOST_TAKEN = 3;

/** The keys of the agent's configuration. */
const configSchema = z.strictObject({
  /** The role whose victory the run shows as its success. */
  success: z.string().optional(),
});

/** The columns of a row that the game reads. */
const rowSchema = z.looseObject({
  pile: z.int().min(1).max(99),
  /** The role that begins, and the other one. */
  players: z.tuple([z.string(), z.string()]),
});

const nim = defineAgent({
  configSchema,
  needsEnvironment: false,
  needsRow: true,
  buildGraph: () => undefined,
  async run(_graph, { config, model, task, signal }: AgentRollout<z.output<typeof configSchema>>) {
    const { pile, players } = rowSchema.parse(task.row);
    const played = { left: pile, moves: 0, chances: new Map<string, boolean[]>() };
    let isLegal = true;
    while (played.left > 0 && isLegal) {
      const role = players[played.moves++ % 2]!;
      const { text } = await model.withRole(role).invoke([new HumanMessage(String(played.left))], { signal });
      const taken = /^[123]$/.test(text.trim()) ? Number(text) : Number.NaN;
      isLegal = taken <= played.left;
      // A pile that is a multiple of four loses, so there only the opponent's mistakes help.
      const best = played.left % (MOST_TAKEN + 1);
      if (best !== 0) played.chances.set(role, [...(played.chances.get(role) ?? []), taken === best]);
      if (isLegal) played.left -= taken;
    }
    // Whoever moved last took the last counter, or made a move that is not one.
    const last = players[(played.moves - 1) % 2]!;
    const winner = isLegal ? last : players[played.moves % 2]!;
    const metrics: Record<string, number> = { moves: played.moves, illegal: isLegal ? 0 : 1 };
    if (config.success !== undefined) metrics.success = winner === config.success ? 1 : 0;
    for (const [role, chances] of played.chances) {
      metrics[`best_${role}`] = chances.filter(Boolean).length / chances.length;
    }
    return {
      metrics,
      metadata: { winner },
      roleRewards: Object.fromEntries(players.map((role) => [role, role === winner ? 1 : 0])),
    };
  },
});

export const agents = { nim };
