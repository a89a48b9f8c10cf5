/** Messages and tools in the shape that chat templates read. */

/** One message of a conversation, in the shape that chat templates read. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  /** Calls of tools in an answer of the model. */
  readonly tool_calls?: readonly ChatToolCall[];
  /** In a tool's message: the call that it answers. */
  readonly tool_call_id?: string;
  /** In a tool's message: the name of the tool. */
  readonly name?: string;
  /** An answer exactly as the model wrote it, its calls included; no template sees it under this name. */
  readonly written?: string;
}

/** One call of a tool. */
export interface ChatToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
}

/** A tool that the model may call, in the shape that chat templates and the OpenAI API have. */
export interface ChatTool {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description: string;
    /** JSON schema of the arguments. */
    readonly parameters: Readonly<Record<string, unknown>>;
  };
}
