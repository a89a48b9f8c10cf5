/** The judges of a run, which are made once and score each of its episodes or groups. */

import type { JudgeConfig } from "@hone/config";
import type { Judge } from "./judge.ts";
import type { JudgeParts } from "./judge-parts.ts";
import type { JudgedEpisode } from "./judged-episode.ts";
import { type GroupJudge, groupJudge } from "./judges/group.ts";
import { makeJudge } from "./registry.ts";

/** One judge with its name and weight. */
export interface PanelMember<Asked> {
  /** The judge's name in the run file, or else its kind. */
  readonly name: string;
  readonly weight: number;
  readonly judge: Asked;
  /** Whether it judges this episode, or its group. */
  readonly isFor: (episode: JudgedEpisode) => boolean;
}

export interface Panel {
  /** In the order of the run file. */
  readonly judges: readonly PanelMember<Judge>[];
  readonly groupJudges: readonly PanelMember<GroupJudge>[];
}

/** @throws the error with which a judge cannot be made, as when its module is missing. */
export async function assemblePanel(configs: readonly JudgeConfig[], parts: JudgeParts): Promise<Panel> {
  const judges: Promise<PanelMember<Judge>>[] = [];
  const groupJudges: PanelMember<GroupJudge>[] = [];
  for (const config of configs) {
    if (config.kind === "group") groupJudges.push(memberOf(config, groupJudge(config, parts)));
    else judges.push(makeJudge(config, parts).then((judge) => memberOf(config, judge)));
  }
  return { judges: await Promise.all(judges), groupJudges };
}

function memberOf<Asked>(config: JudgeConfig, judge: Asked): PanelMember<Asked> {
  const { kind, name = kind, weight, dataSources } = config;
  const sources = dataSources === undefined ? undefined : new Set(dataSources);
  return {
    name,
    weight,
    judge,
    isFor: ({ row }) => sources === undefined || sources.has(row?.dataSource ?? ""),
  };
}
