/**
 * How the shop introduces itself to a model. The instruction is ROLL's (https://github.com/alibaba/ROLL), whose users bring
 * their prompts and curves, with all its peculiarities.
 */

import { ActionFormat, type ActionTool, type EnvironmentDescription } from "@hone/agents";
import { clickAction, readShopAction, searchAction } from "./actions.ts";

export const LAYOUT_NAMES = ["webshop", "compact"] as const;
export type LayoutName = (typeof LAYOUT_NAMES)[number];

/** What `info` holds on the state. */
export const SHOP_INFO_KEYS = ["instruction", "page", "product", "chosen"] as const;

const SEARCH_TOOL: ActionTool = {
  name: "search",
  description: "Searches the shop. It works on the search page alone.",
  parameters: {
    type: "object",
    properties: { keywords: { type: "string", description: "Words to look for" } },
    required: ["keywords"],
  },
  actionOf: ({ keywords }) => (typeof keywords === "string" ? searchAction(keywords) : undefined),
  argumentsOf: (action) => {
    const read = readShopAction(action);
    return read?.kind === "search" ? { keywords: read.keywords } : undefined;
  },
};

const CLICK_TOOL: ActionTool = {
  name: "click",
  description: "Clicks a button, a product or an option of the page.",
  parameters: {
    type: "object",
    properties: { value: { type: "string", description: "One of the available actions, without click[]" } },
    required: ["value"],
  },
  actionOf: ({ value }) => (typeof value === "string" ? clickAction(value) : undefined),
  argumentsOf: (action) => {
    const read = readShopAction(action);
    return read?.kind === "click" ? { value: read.value } : undefined;
  },
};

/** @param format where the model's actions will stand. */
export function describeShop(layout: LayoutName, format: ActionFormat | undefined): EnvironmentDescription {
  const known = { infoKeys: SHOP_INFO_KEYS, tools: [SEARCH_TOOL, CLICK_TOOL] };
  switch (layout) {
    case "webshop":
      return { ...known, instruction: rollInstruction(format) };
    case "compact":
      // A model with a vocabulary of its own could not read more.
      return { ...known, systemPrompt: "", instruction: "", promptTemplate: "{observation}" };
    default:
      return layout satisfies never;
  }
}

function rollInstruction(format: ActionFormat | undefined): string {
  const how =
    format === ActionFormat.toolCall
      ? [
          "An action is a call of one of the tools search and click. If the action is not valid, perform nothing. ",
          "Keywords in search are up to you, but the value in click must be a value in the list of available actions. ",
          "Remember that your keywords in search should be carefully designed.",
        ]
      : [
          "An action should be of the following structure: search[keywords] click[value] If the action is not valid, perform nothing. ",
          "Keywords in search are up to you, but the value in click must be a value in the list of available actions. ",
          "Remember that your keywords in search should be carefully designed. ",
          "Your response should use the following format Thought: I think ... Action: click[something]",
        ];
  return [
    "You are web shopping. I will give you instructions about what to do. ",
    "You have to follow the instructions. Every round I will give you an observation and ",
    "a list of available actions, you have to respond an action based on the state and instruction. ",
    "You can use search action if search is available. You can click one of the buttons in clickables. ",
    ...how,
  ].join("");
}
