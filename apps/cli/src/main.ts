/**
 * `hone`: the command line. One file per command in commands/, loaded when it is asked for.
 */

import { isDiskFull } from "@hone/core";
import { isReaderGone } from "./session.ts";

// `hone up` writes to a file where nobody looks on: a disk without room loses its lines, and does not end the stack.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error) => {
    if (!isDiskFull(error) && !isReaderGone(error)) throw error;
  });
}

// citty decides about colour when it is loaded, and does not look whether its output is a terminal.
if (!process.stdout.isTTY) process.env.NO_COLOR ??= "1";
const { defineCommand, runMain, showUsage } = await import("citty");

const isHelp = process.argv.slice(2).some((argument) => argument === "--help" || argument === "-h");

const done = runMain(
  defineCommand({
    meta: {
      name: "hone",
      version: "0.1.0",
      description:
        "Trains LLM agents with reinforcement learning, on this machine's bus, database and six services.",
    },
    subCommands: {
      start: () => import("./commands/start.ts").then((module) => module.startCommand),
      up: () => import("./commands/up.ts").then((module) => module.upCommand),
      down: () => import("./commands/down.ts").then((module) => module.downCommand),
      run: () => import("./commands/run.ts").then((module) => module.runCommand),
      submit: () => import("./commands/submit.ts").then((module) => module.submitCommand),
      status: () => import("./commands/status.ts").then((module) => module.statusCommand),
      evaluations: () => import("./commands/evaluations.ts").then((module) => module.evaluationsCommand),
      eval: () => import("./commands/eval.ts").then((module) => module.evalCommand),
      chat: () => import("./commands/chat.ts").then((module) => module.chatCommand),
      export: () => import("./commands/export.ts").then((module) => module.exportCommand),
      step: () => import("./commands/step.ts").then((module) => module.stepCommand),
      tokens: () => import("./commands/tokens.ts").then((module) => module.tokensCommand),
      ledger: () => import("./commands/ledger.ts").then((module) => module.ledgerCommand),
      diff: () => import("./commands/diff.ts").then((module) => module.diffCommand),
      cancel: () => import("./commands/control.ts").then((module) => module.cancelCommand),
      pause: () => import("./commands/control.ts").then((module) => module.pauseCommand),
      resume: () => import("./commands/control.ts").then((module) => module.resumeCommand),
      reward: () => import("./commands/reward.ts").then((module) => module.rewardCommand),
      notes: () => import("./commands/notes.ts").then((module) => module.notesCommand),
      new: () => import("./commands/new.ts").then((module) => module.newCommand),
      validate: () => import("./commands/validate.ts").then((module) => module.validateCommand),
      debug: () => import("./commands/debug.ts").then((module) => module.debugCommand),
      judge: () => import("./commands/judge.ts").then((module) => module.judgeCommand),
      replay: () => import("./commands/replay.ts").then((module) => module.replayCommand),
      rescore: () => import("./commands/rescore.ts").then((module) => module.rescoreCommand),
      render: () => import("./commands/render.ts").then((module) => module.renderCommand),
      data: () => import("./commands/data.ts").then((module) => module.dataCommand),
      doctor: () => import("./commands/doctor.ts").then((module) => module.doctorCommand),
    },
  }),
  {
    async showUsage(command, parent) {
      await showUsage(command, parent);
      // citty would call process.exit, in which Node waits for ever where V8 still compiles on other threads and needs memory
      // (nodejs/node#54918). Without it the process ends as nothing is left to do.
      if (isHelp) await Promise.withResolvers<never>().promise;
    },
  },
);
if (!isHelp) await done;
