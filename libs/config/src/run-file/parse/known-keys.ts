/** Lists the keys that a schema allows below a path, for suggestions. */

import { z } from "zod";

/** @returns the keys of the object that the schema describes at `path`; undefined if it is not an object or allows any key. */
export function knownKeys(
  schema: z.core.$ZodType,
  path: readonly PropertyKey[],
  input: unknown,
): readonly string[] | undefined {
  const [head, ...rest] = path;
  const inner = unwrap(schema, input);
  if (inner instanceof z.ZodObject) {
    if (head === undefined) return Object.keys(inner.shape);
    const child: unknown = inner.shape[String(head)];
    return child instanceof z.ZodType ? knownKeys(child, rest, childOf(input, head)) : undefined;
  }
  if (inner instanceof z.ZodArray && head !== undefined && inner.element instanceof z.ZodType) {
    return knownKeys(inner.element, rest, childOf(input, head));
  }
  return undefined;
}

/**
 * Removes defaults, optionals, transforms and unions from a schema. From a union it takes the member whose literals fit the
 * input and that has most of the input's keys.
 */
function unwrap(schema: z.core.$ZodType, input: unknown): z.core.$ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    return unwrap(schema.def.innerType, input);
  }
  if (schema instanceof z.ZodPipe) return unwrap(schema.def.in, input);
  if (schema instanceof z.ZodUnion) {
    const options = schema.options.filter((option) => option instanceof z.ZodObject);
    const fitting = options.filter((option) =>
      Object.entries(option.shape).every(
        ([key, member]) =>
          !(member instanceof z.ZodLiteral) || member.values.has(childOf(input, key) as never),
      ),
    );
    const numShared = (option: z.ZodObject) =>
      Object.keys(option.shape).filter((key) => childOf(input, key) !== undefined).length;
    return fitting.sort((a, b) => numShared(b) - numShared(a))[0] ?? options[0] ?? schema;
  }
  return schema;
}

function childOf(input: unknown, key: PropertyKey): unknown {
  return typeof input === "object" && input !== null
    ? (input as Record<PropertyKey, unknown>)[key]
    : undefined;
}
