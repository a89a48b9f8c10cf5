/**
 * A chat template that renders within limits. Templates come with a model or a run file, so they are untrusted.
 *
 * B1: every expression and statement costs a step, and its value costs further steps in proportion to its size. The budget
 *     grows with the conversation, so that ordinary templates stay far below it and no template runs much longer than a
 *     second.
 * B2: no value grows beyond MAX_VALUE_SIZE. This also limits the operations that count as one step (filters, `tojson`,
 *     joins). An element that a value contains several times is counted each time.
 * B3: steps are limited, not time, so that busy and idle machines refuse the same templates.
 */

import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import { TemplateLimitError } from "./errors.ts";

/** Templates of chat models have up to 20,000 characters. */
const MAX_TEMPLATE_CHARACTERS = 262_144;
/** Steps allowed without any messages; templates of chat models take a few hundred for their preamble. */
const BASE_STEPS = 1_000_000;
/** Steps allowed for each message; templates of chat models take up to a few hundred. */
const STEPS_PER_MESSAGE = 10_000;
/** Limit for characters or nested elements. A context of a million tokens has about four million characters. */
const MAX_VALUE_SIZE = 16_777_216;
/** The most numbers that one range() may have. */
const MAX_RANGE = 100_000;
/** A string costs one step for this many characters, because copying is cheaper than evaluating. */
const CHARACTERS_PER_STEP = 64;

/** A value during rendering. */
interface Value {
  readonly value: unknown;
}

/** The variables of a template. */
interface Scope {
  set(name: string, value: unknown): unknown;
}

/** The used part of the library's interpreter; this compiler cannot resolve the imports in the library's own declarations. */
interface LibraryInterpreter {
  run(program: unknown): Value;
  evaluate(node: unknown, scope: Scope): Value;
}
const LibraryInterpreter: new (scope: Scope) => LibraryInterpreter = Interpreter;

/** Functions that a template may call in addition to those of the language. */
export type TemplateFunctions = Readonly<Record<string, (...args: never[]) => unknown>>;

export class BoundedTemplate {
  readonly #program: unknown;

  /** @throws if the text is not a template, is too long, or nests so deeply that the stack overflows. */
  constructor(text: string) {
    if (text.length > MAX_TEMPLATE_CHARACTERS) {
      throw new TemplateLimitError(`${MAX_TEMPLATE_CHARACTERS} characters`, `${text.length}`);
    }
    this.#program = parse(tokenize(text, { lstrip_blocks: true, trim_blocks: true }));
  }

  /**
   * @param variables by name; the conversation is `messages`.
   * @throws {TemplateLimitError} if a limit is exceeded, and any error that the template raises.
   */
  render(
    variables: Readonly<Record<string, unknown>> & { readonly messages: readonly unknown[] },
    functions: TemplateFunctions = {},
  ): string {
    const scope: Scope = new Environment();
    for (const [name, value] of Object.entries({ ...CONSTANTS, ...functions, ...variables })) {
      scope.set(name, value);
    }
    const maxSteps = BASE_STEPS + STEPS_PER_MESSAGE * variables.messages.length;
    const result = new CountingInterpreter(scope, maxSteps).run(this.#program);
    return String(result.value);
  }
}

/** Counts steps and sizes (B1, B2). */
class CountingInterpreter extends LibraryInterpreter {
  readonly #maxSteps: number;
  readonly #sizes = new WeakMap<object, number>();
  #steps = 0;

  constructor(scope: Scope, maxSteps: number) {
    super(scope);
    this.#maxSteps = maxSteps;
  }

  override evaluate(node: unknown, scope: Scope): Value {
    this.#spend(1);
    const value = super.evaluate(node, scope);
    const content = value.value;
    if (typeof content === "string") {
      if (content.length > MAX_VALUE_SIZE) throw tooLarge(content.length);
      this.#spend(Math.floor(content.length / CHARACTERS_PER_STEP));
    } else if (isContainer(content)) {
      this.#spend(elementCount(content));
      this.#sizeOf(content);
    }
    return value;
  }

  #spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > this.#maxSteps) {
      throw new TemplateLimitError(`${this.#maxSteps} steps`, "more steps");
    }
  }

  /** The size of a value with everything in it (B2). A namespace that changed later keeps the size from when it was first seen. */
  #sizeOf(content: unknown): number {
    if (typeof content === "string") return 1 + content.length;
    if (!isContainer(content)) return 1;
    const known = this.#sizes.get(content);
    if (known !== undefined) return known;
    this.#sizes.set(content, 1); // for a container that contains itself
    let size = 1;
    for (const element of content.values()) size += this.#sizeOf(element.value);
    if (size > MAX_VALUE_SIZE) throw tooLarge(size);
    this.#sizes.set(content, size);
    return size;
  }
}

type Container = readonly Value[] | ReadonlyMap<string, Value>;

function isContainer(content: unknown): content is Container {
  return Array.isArray(content) || content instanceof Map;
}

function elementCount(content: Container): number {
  return content instanceof Map ? content.size : (content as readonly Value[]).length;
}

function tooLarge(size: number): TemplateLimitError {
  return new TemplateLimitError(`values of ${MAX_VALUE_SIZE} characters or elements`, `one of ${size}`);
}

/** Python's range() with a limit on its length. */
function range(first: number, second?: number, step = 1): number[] {
  const [begin, end] = second === undefined ? [0, first] : [first, second];
  const count = Math.max(0, Math.ceil((end - begin) / step));
  if (!(count <= MAX_RANGE)) throw new TemplateLimitError(`ranges of ${MAX_RANGE} numbers`, `${count}`);
  return Array.from({ length: count }, (_, i) => begin + i * step);
}

/** Constants and functions of every template; the language allows both spellings of the constants. */
const CONSTANTS: Readonly<Record<string, unknown>> = {
  true: true,
  false: false,
  none: null,
  True: true,
  False: false,
  None: null,
  range,
  raise_exception: (message: string) => {
    throw new Error(message);
  },
};
