/** The types of what a model's answer contains beside text: tool calls, which are written in one of many formats. */

/** A call as the model wrote it. */
export type WrittenCall =
  | {
      readonly kind: "call";
      readonly name: string;
      readonly arguments: Readonly<Record<string, unknown>>;
      /** Id that the model itself gave, in formats that have one. */
      readonly id?: string;
    }
  /** Text that began as a call and cannot be read as one. */
  | {
      readonly kind: "invalid";
      /** The text that was written. */
      readonly text: string;
      /** Why it cannot be read, in words that the model may be shown: "is no JSON". */
      readonly reason: string;
    };

/** A piece of an answer, in order. */
export type AnswerPiece =
  | { readonly kind: "text"; readonly text: string }
  /** Text of a channel for thoughts, in formats that have one. */
  | { readonly kind: "thought"; readonly text: string }
  | WrittenCall;

/** What a format needs to know about a tool to read its arguments. */
export interface ToolSchema {
  readonly name: string;
  /** JSON schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Reads one answer while it is generated. */
export interface AnswerReader {
  /** @returns the pieces that have become certain. */
  push(text: string): AnswerPiece[];
  /** @returns the remaining pieces; a call that was never closed is invalid. */
  end(): AnswerPiece[];
}

export const invalidCall = (text: string, reason: string): WrittenCall => ({ kind: "invalid", text, reason });

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
