/**
 * Splits what a model was shown into the messages that its chat template rendered, by the marks of the known families.
 *
 * It is a view for people and reads text, in which a user or a tool may have written a mark as well; the record that training
 * uses is the tokens. A text without marks is one message of the user.
 */

/** Who speaks. A role that a template invents is kept as it is written. */
export type ChatRole = "system" | "user" | "assistant" | "tool" | (string & {});

export interface RawMessage {
  readonly role: ChatRole;
  readonly text: string;
  /** Whether a mark ends it; the last one may be the beginning of an answer that the model goes on with. */
  readonly isClosed: boolean;
}

/** How a family opens its messages: the role is the first group of the pattern, or `role` where the mark itself is the role. */
interface Opening {
  readonly pattern: string;
  readonly role?: ChatRole;
}

/** Patterns are plain marks and bounded classes, so that no text makes them slow. */
const OPENINGS: readonly Opening[] = [
  { pattern: String.raw`<\|im_start\|>([a-z_]{1,32})(?: name=[^\n]{1,64})?\n?` }, // ChatML: Qwen, SmolLM, Hermes
  { pattern: String.raw`<\|start_header_id\|>([a-z_]{1,32})<\|end_header_id\|>\n{0,2}` }, // Llama 3
  { pattern: String.raw`<\|header_start\|>([a-z_]{1,32})<\|header_end\|>\n{0,2}` }, // Llama 4
  { pattern: String.raw`<start_of_turn>([a-z_]{1,32})\n?` }, // Gemma 2 and 3
  { pattern: String.raw`<\|turn>([a-z_]{1,32})\n?` }, // Gemma 4
  { pattern: String.raw`<\|im_(system|user|assistant)\|>[^<\n]{0,64}<\|im_middle\|>` }, // Kimi
  { pattern: String.raw`<\|start\|>([a-z_.]{1,64})(?:<\|channel\|>[a-z]{1,32})?[^<]{0,64}<\|message\|>` }, // gpt-oss
  { pattern: String.raw`<\|(system|user|assistant|observation|tool)\|>\n?` }, // GLM, Phi, Zephyr, the examples
  { pattern: String.raw`<\|start_of_role\|>([a-z_]{1,32})<\|end_of_role\|>` }, // Granite
  { pattern: String.raw`<\|(SYSTEM|USER|CHATBOT)_TOKEN\|>` }, // Command
  { pattern: String.raw`<seed:bos>([a-z_]{1,32})\n?` }, // Seed-OSS
  { pattern: "<｜User｜>", role: "user" }, // DeepSeek
  { pattern: "<｜Assistant｜>", role: "assistant" },
  { pattern: "<｜tool▁output▁begin｜>", role: "tool" },
  { pattern: String.raw`\[INST\]`, role: "user" }, // Mistral
  { pattern: String.raw`\[/INST\]`, role: "assistant" },
  { pattern: String.raw`\[SYSTEM_PROMPT\]`, role: "system" },
  { pattern: String.raw`\[AVAILABLE_TOOLS\]`, role: "system" },
  { pattern: String.raw`\[TOOL_RESULTS\]`, role: "tool" },
];

/** Marks that end a message, or stand around messages, and say nothing to people. */
const CLOSINGS = [
  "<|im_end|>",
  "<|start|>assistant",
  "<|endoftext|>",
  "<|begin_of_text|>",
  "<|end_of_text|>",
  "<|eot_id|>",
  "<|eom_id|>",
  "<|eot|>",
  "<end_of_turn>",
  "<turn|>",
  "<|end|>",
  "<|return|>",
  "<|call|>",
  "<|START_OF_TURN_TOKEN|>",
  "<|END_OF_TURN_TOKEN|>",
  "<seed:eos>",
  "<bos>",
  "<eos>",
  "<s>",
  "</s>",
  "[gMASK]",
  "<sop>",
  "<｜begin▁of▁sentence｜>",
  "<｜end▁of▁sentence｜>",
  "<｜tool▁outputs▁begin｜>",
  "<｜tool▁outputs▁end｜>",
  "<｜tool▁output▁end｜>",
  "[/SYSTEM_PROMPT]",
  "[/AVAILABLE_TOOLS]",
  "[/TOOL_RESULTS]",
];

const OPENING = new RegExp(OPENINGS.map(({ pattern }) => pattern).join("|"), "g");
const CLOSED = new RegExp(CLOSINGS.map((mark) => mark.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("|"));
const CLOSING = new RegExp(CLOSED.source, "g");

/** The names that families have for the four roles. */
const ROLES: Readonly<Record<string, ChatRole>> = {
  ipython: "tool",
  observation: "tool",
  function: "tool",
  tool_response: "tool",
  model: "assistant",
  chatbot: "assistant",
  developer: "system",
};

/**
 * @returns the messages in order. What a template writes after the last one for the model to go on from, the opening of its answer,
 *   is no message.
 */
export function splitMessages(text: string): readonly RawMessage[] {
  const messages: RawMessage[] = [];
  const add = (role: ChatRole, piece: string) => {
    const content = withoutClosings(piece);
    if (content.trim() !== "") messages.push({ role, text: content, isClosed: CLOSED.test(piece) });
  };
  let role: ChatRole = "user";
  let from = 0;
  for (const match of text.matchAll(OPENING)) {
    add(role, text.slice(from, match.index));
    role = roleOf(match[0], match.slice(1));
    from = match.index + match[0].length;
  }
  add(role, text.slice(from));
  return messages;
}

/** An answer without the marks that end it. */
export function withoutClosings(text: string): string {
  return text.replace(CLOSING, "").replace(/^\n+|\s+$/g, "");
}

function roleOf(mark: string, groups: readonly (string | undefined)[]): ChatRole {
  const written = groups.find((group) => group !== undefined)?.toLowerCase();
  if (written !== undefined) return ROLES[written] ?? written;
  return (
    OPENINGS.find(({ role, pattern }) => role !== undefined && new RegExp(`^${pattern}$`).test(mark))?.role ??
    "user"
  );
}
