/**
 * TensorBoard's event files: TFRecords, each of which is an Event.
 *
 * Sources: the framing is in tensorflow/core/lib/io/record_writer.h and masked CRC32C in tensorflow/core/lib/hash/crc32c.h; the
 * messages are in tensorboard/compat/proto/{event,summary,tensor,tensor_shape,types}.proto and
 * tensorboard/plugins/hparams/{api,plugin_data}.proto. Only what Hone writes is encoded here; no maintained package of npm does
 * this without TensorFlow.
 *
 *   record = uint64 length, uint32 masked CRC32C of those 8 bytes, data, uint32 masked CRC32C of data; little endian
 */

import type { FileHandle } from "node:fs/promises";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** What of an event decides whether a later one repeats it. */
export interface EventKey {
  readonly timeMs: number;
  readonly step: number;
  /** Of the event's first value; empty for the header of a file. */
  readonly tag: string;
}

const HEADER_BYTES = 12;
const FOOTER_BYTES = 4;
/** Larger than any event that Hone writes: a length beyond it is that of a damaged record. */
const MAX_RECORD_BYTES = 64 * 1024 ** 2;
const MS_PER_SECOND = 1_000;

/** @returns the event that every file begins with. */
export function fileHeader(timeMs: number): Uint8Array {
  return eventOf(timeMs, 0, (event) => event.tag(3, WireType.LengthDelimited).string("brain.Event:2"));
}

/** @returns an event with numbers, which TensorBoard draws as curves. */
export function scalarsEvent(
  timeMs: number,
  step: number,
  values: ReadonlyArray<readonly [tag: string, value: number]>,
): Uint8Array {
  return summaryEvent(timeMs, step, (summary) => {
    for (const [tag, number] of values) {
      nested(summary, 1, (value) => {
        value.tag(1, WireType.LengthDelimited).string(tag);
        value.tag(2, WireType.Bit32).float(number);
      });
    }
  });
}

/** @returns an event with a text in Markdown, which TensorBoard shows under "Text". */
export function textEvent(timeMs: number, tag: string, markdown: string): Uint8Array {
  return summaryEvent(timeMs, 0, (summary) =>
    nested(summary, 1, (value) => {
      value.tag(1, WireType.LengthDelimited).string(tag);
      // TensorProto of one string: dtype DT_STRING = 7, shape [1], string_val.
      nested(value, 8, (tensor) => {
        tensor.tag(1, WireType.Varint).int32(7);
        nested(tensor, 2, (shape) => nested(shape, 2, (dim) => dim.tag(1, WireType.Varint).int64(1)));
        tensor.tag(8, WireType.LengthDelimited).string(markdown);
      });
      pluginOf(value, "text", () => undefined);
    }),
  );
}

/** The tag of TensorBoard's hyperparameters; the plugin knows no other (hparams/metadata.py). */
export const HPARAMS_TAG = "_hparams_/session_start_info";

/** @returns an event with hyperparameters, which TensorBoard shows under "HParams". */
export function hparamsEvent(
  timeMs: number,
  values: ReadonlyArray<readonly [name: string, value: string | number | boolean]>,
): Uint8Array {
  return summaryEvent(timeMs, 0, (summary) =>
    nested(summary, 1, (value) => {
      value.tag(1, WireType.LengthDelimited).string(HPARAMS_TAG);
      // HParamsPluginData.session_start_info: map<string, google.protobuf.Value> hparams = 1, start_time_secs = 5.
      pluginOf(value, "hparams", (data) =>
        nested(data, 3, (session) => {
          for (const [name, each] of values) {
            nested(session, 1, (entry) => {
              entry.tag(1, WireType.LengthDelimited).string(name);
              nested(entry, 2, (held) => protobufValue(held, each));
            });
          }
          session.tag(5, WireType.Bit64).double(timeMs / MS_PER_SECOND);
        }),
      );
      // The plugin ignores a summary without a tensor: an empty one of floats (DT_FLOAT = 1).
      nested(value, 8, (tensor) => {
        tensor.tag(1, WireType.Varint).int32(1);
        nested(tensor, 2, () => undefined);
        tensor.tag(5, WireType.LengthDelimited).bytes(new Uint8Array(4));
      });
    }),
  );
}

/** @returns an event as a file holds it. */
export function recordOf(event: Uint8Array): Uint8Array {
  const record = new Uint8Array(HEADER_BYTES + event.length + FOOTER_BYTES);
  const view = new DataView(record.buffer);
  view.setBigUint64(0, BigInt(event.length), true);
  view.setUint32(8, maskedCrc(record.subarray(0, 8)), true);
  record.set(event, HEADER_BYTES);
  view.setUint32(HEADER_BYTES + event.length, maskedCrc(event), true);
  return record;
}

/**
 * Reads the whole records of a file from a position on, and stops at one that was written in part or is damaged.
 * @returns the position behind the last whole record.
 */
export async function readRecords(
  file: FileHandle,
  from: number,
  onEvent: (key: EventKey) => void,
): Promise<number> {
  const header = new Uint8Array(HEADER_BYTES);
  for (let at = from; ; ) {
    if (!(await isFilled(file, header, at))) return at;
    const view = new DataView(header.buffer);
    const length = Number(view.getBigUint64(0, true));
    if (view.getUint32(8, true) !== maskedCrc(header.subarray(0, 8)) || length > MAX_RECORD_BYTES) return at;
    const body = new Uint8Array(length + FOOTER_BYTES);
    if (!(await isFilled(file, body, at + HEADER_BYTES))) return at;
    const data = body.subarray(0, length);
    if (new DataView(body.buffer).getUint32(length, true) !== maskedCrc(data)) return at;
    onEvent(keyOf(data));
    at += HEADER_BYTES + body.length;
  }
}

async function isFilled(file: FileHandle, into: Uint8Array, at: number): Promise<boolean> {
  const { bytesRead } = await file.read(into, 0, into.length, at);
  return bytesRead === into.length;
}

/** Event: double wall_time = 1, int64 step = 2, string file_version = 3, Summary summary = 5. */
function eventOf(timeMs: number, step: number, fill: (event: BinaryWriter) => void): Uint8Array {
  const event = new BinaryWriter();
  event.tag(1, WireType.Bit64).double(timeMs / MS_PER_SECOND);
  if (step > 0) event.tag(2, WireType.Varint).int64(step);
  fill(event);
  return event.finish();
}

function summaryEvent(timeMs: number, step: number, fill: (summary: BinaryWriter) => void): Uint8Array {
  return eventOf(timeMs, step, (event) => nested(event, 5, fill));
}

/** Summary.Value.metadata = 9: SummaryMetadata with plugin_data = 1: string plugin_name = 1, bytes content = 2. */
function pluginOf(value: BinaryWriter, name: string, fill: (content: BinaryWriter) => void): void {
  nested(value, 9, (metadata) =>
    nested(metadata, 1, (plugin) => {
      plugin.tag(1, WireType.LengthDelimited).string(name);
      nested(plugin, 2, fill);
    }),
  );
}

/** google.protobuf.Value: number_value = 2, string_value = 3, bool_value = 4. */
function protobufValue(held: BinaryWriter, value: string | number | boolean): void {
  if (typeof value === "number") held.tag(2, WireType.Bit64).double(value);
  else if (typeof value === "boolean") held.tag(4, WireType.Varint).bool(value);
  else held.tag(3, WireType.LengthDelimited).string(value);
}

function nested(writer: BinaryWriter, field: number, fill: (inner: BinaryWriter) => void): void {
  writer.tag(field, WireType.LengthDelimited).fork();
  fill(writer);
  writer.join();
}

function keyOf(event: Uint8Array): EventKey {
  const reader = new BinaryReader(event);
  let timeMs = 0;
  let step = 0;
  let tag = "";
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === 1 && type === WireType.Bit64) timeMs = Math.round(reader.double() * MS_PER_SECOND);
    else if (field === 2 && type === WireType.Varint) step = Number(reader.int64());
    else if (field === 5 && type === WireType.LengthDelimited) tag ||= firstTag(reader.bytes());
    else reader.skip(type);
  }
  return { timeMs, step, tag };
}

/** The tag (field 1) of a Summary's first value (field 1). */
function firstTag(summary: Uint8Array): string {
  let reader = new BinaryReader(summary);
  for (let depth = 0; reader.pos < reader.len; ) {
    const [field, type] = reader.tag();
    if (field !== 1) reader.skip(type);
    else if (depth++ === 0) reader = new BinaryReader(reader.bytes());
    else return reader.string();
  }
  return "";
}

const CRC32C_POLYNOMIAL = 0x82f63b78;
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? CRC32C_POLYNOMIAL : 0);
  return crc >>> 0;
});

/** A CRC of data that holds CRCs is a weak one, so it is stored rotated by 15 bits and with a constant added. */
function maskedCrc(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ CRC_TABLE[(crc ^ byte) & 0xff]!;
  crc = (crc ^ 0xffffffff) >>> 0;
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
