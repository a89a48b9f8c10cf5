/** Messages and tools in the form that chat templates read. */

/** One message of a conversation, in the form that chat templates read. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  /** Tool calls in an answer of the model. */
  readonly tool_calls?: readonly ChatToolCall[];
  /** In a tool message: the id of the call that it answers. */
  readonly tool_call_id?: string;
  /** In a tool message: the name of the tool. */
  readonly name?: string;
  /** The answer exactly as the model wrote it, with its tool calls. Templates do not get a field of this name. */
  readonly written?: string;
}

/** One tool call. */
export interface ChatToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
}

/** A tool that the model may call, in the form that chat templates and the OpenAI API use. */
export interface ChatTool {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description: string;
    /** JSON schema of the arguments. */
    readonly parameters: Readonly<Record<string, unknown>>;
  };
}
