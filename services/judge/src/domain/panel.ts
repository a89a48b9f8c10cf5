/** The judges of a run, which are made once and score each of its episodes or groups. */

import type { JudgeConfig, LaterJudgeConfig } from "@hone/config";
import type { Judge } from "./judge.ts";
import type { JudgeParts } from "./judge-parts.ts";
import type { JudgedEpisode } from "./judged-episode.ts";
import { type GroupJudge, groupJudge } from "./judges/group.ts";
import { makeJudge } from "./registry.ts";

/** What is known of every judge. */
interface Member {
  /** The judge's name in the run file, or else its kind. */
  readonly name: string;
  readonly weight: number;
  /** The roles whose reward its score is part of; undefined = all of them. */
  readonly roles: readonly string[] | undefined;
  /** Whether it judges this episode, or its group. */
  readonly isFor: (episode: JudgedEpisode) => boolean;
}

/** One judge with its name and weight. */
export interface PanelMember<Asked> extends Member {
  readonly judge: Asked;
}

/** A judge whose score somebody gives after the rollout has ended. */
export interface LaterMember extends Member {
  /** Number of judges of single episodes that come before it in the run file, without others of this kind. */
  readonly judgesBefore: number;
  /** The value if nobody gives it in time; undefined = the rollout is then left out. */
  readonly fallback: number | undefined;
}

export interface Panel {
  /** In the order of the run file. */
  readonly judges: readonly PanelMember<Judge>[];
  readonly groupJudges: readonly PanelMember<GroupJudge>[];
  readonly laterJudges: readonly LaterMember[];
}

/** @throws the error with which a judge cannot be made, as when its module is missing. */
export async function assemblePanel(configs: readonly JudgeConfig[], parts: JudgeParts): Promise<Panel> {
  const judges: Promise<PanelMember<Judge>>[] = [];
  const groupJudges: PanelMember<GroupJudge>[] = [];
  const laterJudges: LaterMember[] = [];
  for (const config of configs) {
    if (config.kind === "group") groupJudges.push({ ...memberOf(config), judge: groupJudge(config, parts) });
    else if (config.kind === "later") laterJudges.push(laterMember(config, judges.length));
    else judges.push(makeJudge(config, parts).then((judge) => ({ ...memberOf(config), judge })));
  }
  return { judges: await Promise.all(judges), groupJudges, laterJudges };
}

function laterMember(config: LaterJudgeConfig, judgesBefore: number): LaterMember {
  return { ...memberOf(config), judgesBefore, fallback: config.default };
}

function memberOf({ kind, name = kind, weight, dataSources, roles }: JudgeConfig): Member {
  const sources = dataSources === undefined ? undefined : new Set(dataSources);
  return {
    name,
    weight,
    roles,
    isFor: ({ row }) => sources === undefined || sources.has(row?.dataSource ?? ""),
  };
}
