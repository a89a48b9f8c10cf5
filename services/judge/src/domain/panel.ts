/** The judges of a run, made once and asked for each of its episodes. */

import type { JudgeConfig } from "@hone/config";
import type { Judge } from "./judge.ts";
import type { JudgedEpisode } from "./judged-episode.ts";
import { type JudgeParts, makeJudge } from "./registry.ts";

/** One judge with what the run file says of it. */
export interface PanelMember {
  /** Its name, or its kind: unlike those of the other members where the run file names them so. */
  readonly name: string;
  readonly weight: number;
  readonly judge: Judge;
  /** Whether it judges this episode at all. */
  readonly isFor: (episode: JudgedEpisode) => boolean;
}

export type Panel = readonly PanelMember[];

/** @throws whatever keeps a judge from being made, such as a module that is not there. */
export function assemblePanel(configs: readonly JudgeConfig[], parts: JudgeParts): Promise<Panel> {
  return Promise.all(configs.map((config) => makeMember(config, parts)));
}

async function makeMember(config: JudgeConfig, parts: JudgeParts): Promise<PanelMember> {
  const { kind, name = kind, weight, dataSources } = config;
  const sources = dataSources === undefined ? undefined : new Set(dataSources);
  return {
    name,
    weight,
    judge: await makeJudge(config, parts),
    isFor: ({ row }) => sources === undefined || sources.has(row?.dataSource ?? ""),
  };
}
