/**
 * Bad protobuf messages of any schema, made by reflection.
 *
 *   anyMessage(schema)               a message that can be encoded, with absurd values in every field
 *   corrupted(schema, valid)         a valid message with a few absurd fields, which passes checks that stop the others
 *   badBodies(schema, valid)         the bytes of both, and bytes that are damaged: cut off, flipped, doubled, random
 */

import {
  clone,
  create,
  type DescField,
  type DescMessage,
  type MessageShape,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import fc from "fast-check";
import {
  absurdDouble,
  absurdInt32,
  absurdInt64,
  absurdText,
  absurdUint32,
  absurdUint64,
} from "./absurd-values.ts";

/** Long enough that two arrays which should have one length differ, and short enough for thousands of messages in a test. */
const MAX_LIST = 6;
const MAX_RANDOM_BYTES = 256;
const MAX_CORRUPTIONS = 3;
/** Levels of messages in messages; the deepest of Hone's is at the third level. */
const MAX_DEPTH = 3;

/** A message whose fields have any value that their types allow. */
export function anyMessage<Schema extends DescMessage>(schema: Schema): fc.Arbitrary<MessageShape<Schema>> {
  return messageAt(schema, 0);
}

function messageAt<Schema extends DescMessage>(
  schema: Schema,
  depth: number,
): fc.Arbitrary<MessageShape<Schema>> {
  // Some schemas contain themselves.
  const chosen = schema.fields.filter((field) => field.message === undefined || depth < MAX_DEPTH);
  const fields = Object.fromEntries(chosen.map((field) => [field.localName, anyField(field, depth + 1)]));
  return fc.record(fields, { requiredKeys: [] }).map((values) => withFields(schema, create(schema), values));
}

/** A copy of a valid message with one to three of its fields, at any depth, replaced. */
export function corrupted<Schema extends DescMessage>(
  schema: Schema,
  valid: MessageShape<Schema>,
): fc.Arbitrary<MessageShape<Schema>> {
  const spots = spotsOf(schema, valid);
  const change = fc
    .integer({ min: 0, max: spots.length - 1 })
    .chain((index) => anyField(spots[index]!.field, MAX_DEPTH - 1).map((value) => ({ index, value })));
  return fc.array(change, { minLength: 1, maxLength: MAX_CORRUPTIONS }).map((changes) => {
    const copy = clone(schema, valid);
    const own = spotsOf(schema, copy);
    for (const { index, value } of changes) {
      const spot = own[index]!;
      withFields(spot.schema, spot.holder, { [spot.field.localName]: value });
    }
    return copy;
  });
}

/** Bodies as they may arrive on the bus. Most of them cannot be decoded or break a rule; some are valid by chance. */
export function badBodies<Schema extends DescMessage>(
  schema: Schema,
  valid: MessageShape<Schema>,
): fc.Arbitrary<Uint8Array> {
  return fc.oneof(
    { arbitrary: fc.uint8Array({ maxLength: MAX_RANDOM_BYTES }), weight: 1 },
    { arbitrary: damaged(toBinary(schema, valid)), weight: 3 },
    { arbitrary: anyMessage(schema).map((message) => toBinary(schema, message)), weight: 2 },
    { arbitrary: corrupted(schema, valid).map((message) => toBinary(schema, message)), weight: 4 },
  );
}

/** The bytes, cut off, with bits flipped, with a part left out, doubled or overwritten. */
export function damaged(bytes: Uint8Array): fc.Arbitrary<Uint8Array> {
  const place = fc.integer({ min: 0, max: Math.max(0, bytes.length - 1) });
  const twoPlaces = fc
    .tuple(place, place)
    .map(([a, b]): [number, number] => [Math.min(a, b), Math.max(a, b)]);
  return fc.oneof(
    place.map((end) => bytes.slice(0, end)),
    fc.array(fc.tuple(place, fc.integer({ min: 0, max: 7 })), { minLength: 1, maxLength: 8 }).map((flips) => {
      const copy = bytes.slice();
      for (const [at, bit] of flips) if (at < copy.length) copy[at]! ^= 1 << bit;
      return copy;
    }),
    twoPlaces.map(([a, b]) => Uint8Array.from([...bytes.subarray(0, a), ...bytes.subarray(b)])),
    twoPlaces.map(([a, b]) => Uint8Array.from([...bytes.subarray(0, b), ...bytes.subarray(a)])),
    fc.tuple(place, fc.uint8Array({ maxLength: 16 })).map(([at, inserted]) => {
      return Uint8Array.from([...bytes.subarray(0, at), ...inserted, ...bytes.subarray(at)]);
    }),
  );
}

/** A field that can be replaced, with its message. */
interface Spot {
  readonly schema: DescMessage;
  readonly holder: object;
  readonly field: DescField;
}

/** Every field of a message and of the messages in it, in a fixed order. */
function spotsOf(schema: DescMessage, message: object): Spot[] {
  return schema.fields.flatMap((field): Spot[] => {
    const own = { schema, holder: message, field };
    const inner = innerMessages(field, fieldValue(message, field));
    const innerSchema = field.message;
    if (innerSchema === undefined) return [own];
    return [own, ...inner.flatMap((each) => spotsOf(innerSchema, each))];
  });
}

function fieldValue(message: object, field: DescField): unknown {
  if (field.oneof === undefined) return Reflect.get(message, field.localName);
  const chosen = Reflect.get(message, field.oneof.localName) as { case?: string; value?: unknown };
  return chosen.case === field.localName ? chosen.value : undefined;
}

function innerMessages(field: DescField, value: unknown): object[] {
  if (field.message === undefined || typeof value !== "object" || value === null) return [];
  if (field.fieldKind === "list") return value as object[];
  return field.fieldKind === "map" ? Object.values(value) : [value];
}

/** Sets fields by their names; a member of a oneof replaces the one that was set. */
function withFields<Message extends object>(
  schema: DescMessage,
  message: Message,
  values: Readonly<Record<string, unknown>>,
): Message {
  for (const field of schema.fields) {
    if (!(field.localName in values)) continue;
    const value = values[field.localName];
    if (field.oneof === undefined) Reflect.set(message, field.localName, value);
    else Reflect.set(message, field.oneof.localName, { case: field.localName, value });
  }
  return message;
}

function anyField(field: DescField, depth: number): fc.Arbitrary<unknown> {
  switch (field.fieldKind) {
    case "scalar":
      return anyScalar(field.scalar);
    case "enum":
      return fc.oneof(fc.constantFrom(...field.enum.values.map(({ number }) => number)), absurdInt32);
    case "message":
      return messageAt(field.message, depth);
    case "list":
      return fc.array(anyElement(field, depth), { maxLength: MAX_LIST });
    case "map":
      return fc.dictionary(
        fc.string({ unit: "binary", maxLength: 10 }).filter((key) => key !== "__proto__"),
        anyElement(field, depth),
        { maxKeys: MAX_LIST },
      );
    default:
      return field satisfies never;
  }
}

function anyElement(field: DescField & { fieldKind: "list" | "map" }, depth: number): fc.Arbitrary<unknown> {
  if (field.message !== undefined) return messageAt(field.message, depth);
  if (field.enum !== undefined) return absurdInt32;
  return anyScalar(field.scalar ?? ScalarType.STRING);
}

function anyScalar(type: ScalarType): fc.Arbitrary<unknown> {
  switch (type) {
    case ScalarType.DOUBLE:
      return absurdDouble;
    case ScalarType.FLOAT:
      return fc.oneof(fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, -0), fc.float());
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.STRING:
      return absurdText;
    case ScalarType.BYTES:
      return fc.uint8Array({ maxLength: 64 });
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return absurdUint32;
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return absurdInt32;
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return absurdUint64;
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return absurdInt64;
    default:
      return type satisfies never;
  }
}
