/**
 * Reads answers in OpenAI's harmony format (gpt-oss): messages with a header and a body,
 *
 *     <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>
 *
 * Messages in the channel "analysis" are thoughts, a message to a function is a call, and everything else is text. The answer
 * begins within the header of its first message, because the prompt ends with `<|start|>assistant`.
 */

import { lengthOfBeginning } from "./block-reader.ts";
import { jsonObject } from "./json-calls.ts";
import { type AnswerPiece, type AnswerReader, invalidCall } from "./tool-call.ts";

const MESSAGE = "<|message|>";
const ENDS = ["<|end|>", "<|call|>", "<|return|>", "<|start|>"] as const;
/** How a header can begin: with a role, a channel or a recipient. */
const HEADER_BEGIN = /^\s*(?:<\|start\|>)?\s*(?:assistant\s*)?(?:<\|channel\|>|to=|<\|message\|>)/;
const MAX_BEGIN_CHARACTERS = 40;
const FUNCTION = /to=functions\.([^\s<]+)/;
const ANALYSIS = /<\|channel\|>\s*analysis/;

type State =
  | { readonly kind: "header"; readonly isFirst: boolean }
  | { readonly kind: "body"; readonly header: string }
  /** The answer is not in harmony's format. */
  | { readonly kind: "plain" };

export class HarmonyReader implements AnswerReader {
  #state: State = { kind: "header", isFirst: true };
  #pending = "";

  push(text: string): AnswerPiece[] {
    this.#pending += text;
    const pieces: AnswerPiece[] = [];
    while (this.#step(pieces));
    return pieces;
  }

  end(): AnswerPiece[] {
    const pieces: AnswerPiece[] = [];
    const state = this.#state;
    const rest = this.#pending;
    this.#pending = "";
    this.#state = { kind: "plain" };
    // A header without a body is dropped; an answer without any header is text.
    if (state.kind === "body") this.#close(pieces, state.header, rest);
    else if (
      rest !== "" &&
      (state.kind === "plain" || (state.isFirst && !HEADER_BEGIN.test(rest.slice(0, MAX_BEGIN_CHARACTERS))))
    ) {
      pieces.push({ kind: "text", text: rest });
    }
    return pieces;
  }

  /** @returns whether there may be more to do. */
  #step(pieces: AnswerPiece[]): boolean {
    const state = this.#state;
    switch (state.kind) {
      case "plain":
        this.#give(pieces, "text", this.#pending.length);
        return false;
      case "header":
        return this.#readHeader(state.isFirst);
      case "body":
        return this.#readBody(pieces, state.header);
    }
  }

  #readHeader(isFirst: boolean): boolean {
    if (isFirst && !HEADER_BEGIN.test(this.#pending.slice(0, MAX_BEGIN_CHARACTERS))) {
      if (this.#pending.length < MAX_BEGIN_CHARACTERS) return false;
      this.#state = { kind: "plain" };
      return true;
    }
    const at = this.#pending.indexOf(MESSAGE);
    if (at < 0) return false;
    this.#state = { kind: "body", header: this.#pending.slice(0, at) };
    this.#pending = this.#pending.slice(at + MESSAGE.length);
    return true;
  }

  #readBody(pieces: AnswerPiece[], header: string): boolean {
    const found = ENDS.map((mark) => ({ mark, at: this.#pending.indexOf(mark) }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => a.at - b.at)[0];
    if (found === undefined) {
      if (FUNCTION.test(header)) return false;
      const certain = this.#pending.length - lengthOfBeginning(this.#pending, ENDS);
      this.#give(pieces, kindOf(header), certain);
      return false;
    }
    this.#close(pieces, header, this.#pending.slice(0, found.at));
    this.#pending = this.#pending.slice(found.at + found.mark.length);
    this.#state = { kind: "header", isFirst: false };
    return true;
  }

  #close(pieces: AnswerPiece[], header: string, body: string): void {
    const name = FUNCTION.exec(header)?.[1];
    if (name === undefined) {
      if (body !== "") pieces.push({ kind: kindOf(header), text: body });
      return;
    }
    const given = body.trim() === "" ? {} : jsonObject(body);
    pieces.push(
      given === undefined
        ? invalidCall(body, `calls ${name} with arguments that are no JSON object`)
        : { kind: "call", name, arguments: given },
    );
  }

  #give(pieces: AnswerPiece[], kind: "text" | "thought", length: number): void {
    if (length > 0) pieces.push({ kind, text: this.#pending.slice(0, length) });
    this.#pending = this.#pending.slice(length);
  }
}

function kindOf(header: string): "text" | "thought" {
  return ANALYSIS.test(header) ? "thought" : "text";
}
