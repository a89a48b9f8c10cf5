/** The judges of a run, made once and asked for each of its episodes or groups. */

import type { JudgeConfig } from "@hone/config";
import type { Judge } from "./judge.ts";
import type { JudgeParts } from "./judge-parts.ts";
import type { JudgedEpisode } from "./judged-episode.ts";
import { type GroupJudge, groupJudge } from "./judges/group.ts";
import { makeJudge } from "./registry.ts";

/** One judge with what the run file says of it. */
export interface PanelMember<Asked> {
  /** Its name, or its kind: unlike those of the other members where the run file names them so. */
  readonly name: string;
  readonly weight: number;
  readonly judge: Asked;
  /** Whether it judges this episode, or its group, at all. */
  readonly isFor: (episode: JudgedEpisode) => boolean;
}

export interface Panel {
  /** In the order of the run file. */
  readonly judges: readonly PanelMember<Judge>[];
  readonly groupJudges: readonly PanelMember<GroupJudge>[];
}

/** @throws whatever keeps a judge from being made, such as a module that is not there. */
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
