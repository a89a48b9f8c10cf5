/** Prints a rollout of `hone debug` while it is played. */

import type { EnvironmentReset, EnvironmentStep } from "@hone/agents";
import type { Terminal } from "../terminal.ts";
import type { DebuggedRollout, DebugOptions } from "./debug-rollout.ts";
import type { SeenStep, SeenToken, SeenToolCall, SeenTurn } from "./turn-recorder.ts";

export interface RolloutPrinterOptions {
  /** Prints each sampled token with its log-probability. */
  readonly hasLogprobs: boolean;
}

/** Width at which tokens are wrapped, which fits most windows; texts are not wrapped. */
const COLUMNS = 100;
const INDENT = "  ";
/** Width of the column of names. */
const NAME_COLUMNS = 10;

export class RolloutPrinter {
  readonly #terminal: Terminal;
  readonly #options: RolloutPrinterOptions;

  constructor(terminal: Terminal, options: RolloutPrinterOptions) {
    this.#terminal = terminal;
    this.#options = options;
  }

  listener(): DebugOptions["listener"] {
    return {
      onWait: (what) => this.#terminal.live(`${what} …`),
      onTask: ({ id, environment, row }, size) => {
        const what = environment === undefined ? JSON.stringify(row) : environment.configJson;
        this.#named("task", `${id} (of ${size})`);
        this.#named("", this.#dim(what));
      },
      onAttempt: () => this.#terminal.live(""),
      onReset: (reset) => this.#reset(reset),
      onTurn: (turn) => this.#turn(turn),
      onToolCall: (call) => this.#toolCall(call),
      onStep: (step) => this.#step(step),
      onFinish: (reward) => this.#named("reward", `${reward}, for the end of the episode`),
      onFailure: (error) => this.#failure(error),
    };
  }

  #reset({ observation, info }: EnvironmentReset): void {
    this.#heading("reset");
    this.#environment({ observation, info });
  }

  #turn({ turn, sample, isNewSample, messages, tools, begin, tokens, answer, ...rest }: SeenTurn): void {
    const place = isNewSample ? `begins sample ${sample}` : `continues sample ${sample}`;
    this.#heading(`turn ${turn + 1}`, place);
    if (tools.length > 0) this.#named("tools", tools.join(", "));
    for (const { role, content, tool_calls: calls = [] } of messages) {
      this.#named(role, content);
      for (const call of calls) this.#named("", callText(call.function));
    }
    this.#named("answer", this.#terminal.style("green", answer));
    const { finishReason, generationMs } = rest;
    const sampled = tokens.filter(({ mask }) => mask === 1);
    const known = sampled.filter(({ logprob }) => logprob !== undefined);
    const sum = known.reduce((total, { logprob = 0 }) => total + logprob, 0);
    this.#named(
      "",
      this.#dim(
        `ended by ${finishReason} after ${Math.round(generationMs)} ms${known.length > 0 ? `, log-probability ${sum.toFixed(3)}` : ""}`,
      ),
    );
    const from = tokens.findIndex(({ mask }) => mask === 1);
    const split = from < 0 ? tokens.length : from;
    this.#tokens(tokens.slice(0, split), begin, 0);
    this.#tokens(tokens.slice(split), begin + split, 1);
  }

  #tokens(tokens: readonly SeenToken[], begin: number, mask: 0 | 1): void {
    if (tokens.length === 0) return;
    this.#named("tokens", `${begin} to ${begin + tokens.length - 1}, mask ${mask}`);
    let line = "";
    const flush = () => {
      if (line !== "") this.#named("", mask === 1 ? this.#terminal.style("green", line) : this.#dim(line));
      line = "";
    };
    for (const token of tokens) {
      const text = this.#tokenText(token);
      if (line !== "" && line.length + 2 + text.length > COLUMNS) flush();
      line += line === "" ? text : `  ${text}`;
    }
    flush();
  }

  #tokenText({ id, text, logprob }: SeenToken): string {
    const known = this.#options.hasLogprobs && logprob !== undefined ? ` ${logprob.toFixed(3)}` : "";
    return `${id} ${JSON.stringify(text)}${known}`;
  }

  #toolCall({ name, arguments: args, kind, text }: SeenToolCall): void {
    this.#named("tool", `${callText({ name, arguments: args })} ${this.#dim(kind)}`);
    this.#named("", text);
  }

  #step({ answer: _, reward, terminated, truncated, ...reset }: SeenStep): void {
    const ends = [...(terminated ? ["terminated"] : []), ...(truncated ? ["truncated"] : [])];
    this.#named("reward", [String(reward), ...ends].join(", "));
    this.#environment(reset);
  }

  #environment({ observation, info }: Pick<EnvironmentStep, "observation" | "info">): void {
    this.#named("observes", observation);
    if (Object.keys(info).length > 0) this.#named("", this.#dim(JSON.stringify(info)));
  }

  #failure(error: unknown): void {
    this.#heading("failed");
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#named("", this.#terminal.style("red", stack));
  }

  /** Prints how the rollout ended. */
  end({ record, turns, verdict, groupJudges, task, rule }: DebuggedRollout): void {
    this.#heading("end");
    this.#named("outcome", [record.outcome, record.reason].filter((text) => text !== "").join(": "));
    const rewards = record.turns.map(({ reward }, index) => `${index + 1}: ${reward ?? "none"}`);
    if (rewards.length > 0) this.#named("rewards", `of turns ${rewards.join(", ")}`);
    if (Object.keys(record.metrics).length > 0) this.#named("metrics", JSON.stringify(record.metrics));
    if (Object.keys(record.metadata).length > 0) this.#named("metadata", JSON.stringify(record.metadata));
    const numSampled = turns.flatMap(({ tokens }) => tokens).filter(({ mask }) => mask === 1).length;
    this.#named(
      "record",
      `${record.turns.length} turns, ${record.samples.length} samples, ${numSampled} sampled tokens`,
    );
    const truth = (task.row?.reward_model as { readonly ground_truth?: unknown } | undefined)?.ground_truth;
    if (truth !== undefined) this.#named("truth", typeof truth === "string" ? truth : JSON.stringify(truth));
    this.#verdict(verdict);
    for (const name of groupJudges) {
      this.#named("judge", `${name}: not asked, because it compares the rollouts of a group`);
    }
    if (rule !== undefined) {
      const text = rule.rule === "drop" ? "is left out" : `is scored as ${JSON.stringify(rule.rule)}`;
      this.#named("in a run", `a rollout with this outcome ${text} (${rule.key})`);
    }
  }

  #verdict(verdict: DebuggedRollout["verdict"]): void {
    switch (verdict.kind) {
      case "passed":
        this.#named("reward", "none: the outcome says nothing about the agent");
        return;
      case "failed":
        this.#named("reward", this.#terminal.style("red", `none: ${verdict.reason}`));
        return;
      case "scored":
        for (const { judge, value, weight, metrics, turnRewards, reason } of verdict.scores) {
          const figures = Object.keys(metrics).length === 0 ? "" : ` ${this.#dim(JSON.stringify(metrics))}`;
          this.#named("judge", `${judge} ${value} x ${weight}${figures}`);
          for (const each of turnRewards) this.#named("", `turn ${each.turn + 1}: ${each.value}`);
          if (reason !== undefined) this.#named("", this.#dim(reason));
        }
        this.#named("reward", this.#terminal.style("bold", String(verdict.reward)));
    }
  }

  #heading(text: string, more = ""): void {
    this.#terminal.line();
    this.#terminal.line(`${this.#terminal.style("bold", text)}${more === "" ? "" : ` ${this.#dim(more)}`}`);
  }

  /** Prints a name and a text; further lines of the text are aligned with its first. */
  #named(name: string, text: string): void {
    const [first = "", ...more] = text.split("\n");
    const indent = INDENT + " ".repeat(NAME_COLUMNS);
    this.#terminal.line(`${INDENT}${this.#terminal.style("cyan", name.padEnd(NAME_COLUMNS))}${first}`);
    for (const line of more) this.#terminal.line(`${indent}${line}`);
  }

  #dim(text: string): string {
    return this.#terminal.style("dim", text);
  }
}

function callText({
  name,
  arguments: args,
}: {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}): string {
  return `${name}(${JSON.stringify(args)})`;
}
