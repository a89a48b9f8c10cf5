/**
 * A chat template that renders within bounds, whatever it holds: it comes with a model or a run file, from anybody.
 *
 * B1: every expression and statement costs a step, and what it gives costs by its size; the budget follows the
 *     conversation, so that honest templates stay far below it and no template runs longer than a second or so.
 * B2: no value grows beyond MAX_VALUE_SIZE, so neither do the parts of the language that count as one step (filters,
 *     `tojson`, joins); what a value holds many times counts as often.
 * B3: the time does not matter, the steps do: the same template is refused everywhere, on busy machines as on idle ones.
 */

import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import { TemplateLimitError } from "./errors.ts";

/** Templates of chat models have up to 20,000 characters. */
const MAX_TEMPLATE_CHARACTERS = 262_144;
/** Steps of a conversation without messages; templates of chat models take some hundred for their preamble. */
const BASE_STEPS = 1_000_000;
/** Templates of chat models take up to some hundred steps for each message. */
const STEPS_PER_MESSAGE = 10_000;
/** Characters, or values in a list with all that they hold. A context of a million tokens has some four million characters. */
const MAX_VALUE_SIZE = 16_777_216;
/** Numbers of one range(). */
const MAX_RANGE = 100_000;
/** A string costs a step for so many characters: copying is cheaper than evaluating. */
const CHARACTERS_PER_STEP = 64;

/** What a template computes with. */
interface Value {
  readonly value: unknown;
}

/** Names that a template knows. */
interface Scope {
  set(name: string, value: unknown): unknown;
}

/** The library's interpreter as it is used here; its declarations name files in a way that this compiler does not follow. */
interface LibraryInterpreter {
  run(program: unknown): Value;
  evaluate(node: unknown, scope: Scope): Value;
}
const LibraryInterpreter: new (scope: Scope) => LibraryInterpreter = Interpreter;

/** What a template may call, beside the language's own. */
export type TemplateFunctions = Readonly<Record<string, (...args: never[]) => unknown>>;

export class BoundedTemplate {
  readonly #program: unknown;

  /** @throws where the text is no template, nests deeper than the stack, or is longer than any template. */
  constructor(text: string) {
    if (text.length > MAX_TEMPLATE_CHARACTERS) {
      throw new TemplateLimitError(`${MAX_TEMPLATE_CHARACTERS} characters`, `${text.length}`);
    }
    this.#program = parse(tokenize(text, { lstrip_blocks: true, trim_blocks: true }));
  }

  /**
   * @param variables by name; the conversation is `messages`.
   * @throws {TemplateLimitError} beyond the bounds, and what the template raises.
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

  /** How much a value holds, what it holds many times as often. A namespace that changed counts as when it was first seen. */
  #sizeOf(content: unknown): number {
    if (typeof content === "string") return 1 + content.length;
    if (!isContainer(content)) return 1;
    const known = this.#sizes.get(content);
    if (known !== undefined) return known;
    this.#sizes.set(content, 1); // of one that holds itself
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

/** Python's, with a bound. */
function range(first: number, second?: number, step = 1): number[] {
  const [begin, end] = second === undefined ? [0, first] : [first, second];
  const count = Math.max(0, Math.ceil((end - begin) / step));
  if (!(count <= MAX_RANGE)) throw new TemplateLimitError(`ranges of ${MAX_RANGE} numbers`, `${count}`);
  return Array.from({ length: count }, (_, i) => begin + i * step);
}

/** Names that every template knows, in both spellings of the language. */
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
