/** What an answer of a model holds beside text: calls of tools, written in one of many formats. */

/** A call as the model wrote it. */
export type WrittenCall =
  | {
      readonly kind: "call";
      readonly name: string;
      readonly arguments: Readonly<Record<string, unknown>>;
      /** Given by the model itself, in formats that have it. */
      readonly id?: string;
    }
  /** It began as a call and cannot be read as one. */
  | {
      readonly kind: "invalid";
      /** What was written. */
      readonly text: string;
      /** Why, as it may be told to the model: "is no JSON". */
      readonly reason: string;
    };

/** A piece of an answer, in order. */
export type AnswerPiece =
  | { readonly kind: "text"; readonly text: string }
  /** Of a channel for thoughts, in formats that have one. */
  | { readonly kind: "thought"; readonly text: string }
  | WrittenCall;

/** What formats need to know of a tool to read its arguments. */
export interface ToolSchema {
  readonly name: string;
  /** JSON schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Reads one answer as it is written. */
export interface AnswerReader {
  /** @returns the pieces that are certain now. */
  push(text: string): AnswerPiece[];
  /** @returns the rest; what began as a call and was never closed is invalid. */
  end(): AnswerPiece[];
}

export const invalidCall = (text: string, reason: string): WrittenCall => ({ kind: "invalid", text, reason });

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
