/** How the house introduces itself to a model. */

import { ActionFormat, type ActionTool, type EnvironmentDescription } from "@hone/agents";

/** What `info` holds at every moment of an episode. */
export const HOUSE_INFO_KEYS = [
  "room",
  "place",
  "carrying",
  "task",
  "task_kind",
  "score",
  "subgoals",
  "steps_left",
  "solution_steps",
] as const;

const ACT: ActionTool = {
  name: "act",
  description: "Carry out one command in the house.",
  parameters: {
    type: "object",
    properties: { command: { type: "string", description: "The command, such as: go to desk 1" } },
    required: ["command"],
  },
  actionOf: ({ command }) => (typeof command === "string" ? command : undefined),
  argumentsOf: (action) => ({ command: action }),
};

const COMMANDS = [
  "go <direction>",
  "go to <place>",
  "look",
  "inventory",
  "open <place or door>",
  "close <place or door>",
  "take <object> from <place>",
  "put <object> in/on <place>",
  "clean <object> with <sink>",
  "heat <object> with <microwave or stove>",
  "cool <object> with <fridge>",
  "unlock <door> with <key>",
  "examine <object>",
  "use <lamp>",
] as const;

/** @param format where the model's actions will stand. */
export function describeHouse(format: ActionFormat | undefined): EnvironmentDescription {
  return { instruction: instructionFor(format), infoKeys: HOUSE_INFO_KEYS, tools: [ACT] };
}

function instructionFor(format: ActionFormat | undefined): string {
  return [
    "You are in a house and have a task to do there. You see what is in a place only after you went to it, and what is in a closed place only after you opened it.",
    "You can carry one object, and any number of keys. To examine an object in the light of a lamp, bring it to the lamp, use the lamp and examine the object.",
    `The commands are: ${COMMANDS.join(", ")}.`,
    `Give one command in each turn. ${howToAnswer(format)}`,
  ].join("\n");
}

function howToAnswer(format: ActionFormat | undefined): string {
  switch (format) {
    case ActionFormat.toolCall:
      return "Call the tool act with the command.";
    case ActionFormat.codeBlock:
      return "Write it between lines of three backquotes.";
    case ActionFormat.text:
      return "Answer with the command alone.";
    case ActionFormat.thinkAnswer:
      return "Think first, then answer, such as <think>I need the mug.</think><answer>go to desk 1</answer>";
    case ActionFormat.answer:
    case undefined:
      return "Write it as an answer, such as <answer>go to desk 1</answer>";
    default:
      return format satisfies never;
  }
}
