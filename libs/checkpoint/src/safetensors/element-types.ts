/**
 * The number types of checkpoints. In memory all numbers are float32. Widening is exact, so a number that is read and
 * written back in the same type keeps its bits; narrowing rounds to the nearest, ties to even, as PyTorch does.
 */

/** Stored types by their names in safetensors files. */
export const ElementType = {
  F32: "F32",
  F16: "F16",
  /** The upper half of a float32. */
  BF16: "BF16",
} as const;
export type ElementType = (typeof ElementType)[keyof typeof ElementType];

interface Codec {
  readonly bytes: number;
  /** Reads `target.length` numbers from the start of a buffer. */
  widen(raw: ArrayBuffer, target: Float32Array): void;
  /** Writes the numbers to the start of a buffer. */
  narrow(values: Float32Array, raw: ArrayBuffer): void;
}

const CODECS: Readonly<Record<ElementType, Codec>> = {
  F32: {
    bytes: 4,
    widen: (raw, target) => target.set(new Float32Array(raw, 0, target.length)),
    narrow: (values, raw) => new Float32Array(raw, 0, values.length).set(values),
  },
  F16: {
    bytes: 2,
    widen: (raw, target) => target.set(new Float16Array(raw, 0, target.length)),
    narrow: (values, raw) => new Float16Array(raw, 0, values.length).set(values),
  },
  BF16: { bytes: 2, widen: widenBfloat16, narrow: narrowBfloat16 },
};

export function codecOf(type: ElementType): Codec {
  return CODECS[type];
}

export function isElementType(name: unknown): name is ElementType {
  return typeof name === "string" && Object.hasOwn(CODECS, name);
}

function widenBfloat16(raw: ArrayBuffer, target: Float32Array): void {
  const halves = new Uint16Array(raw, 0, target.length);
  const bits = new Uint32Array(target.buffer, target.byteOffset, target.length);
  for (let i = 0; i < bits.length; i++) bits[i] = halves[i]! << 16;
}

function narrowBfloat16(values: Float32Array, raw: ArrayBuffer): void {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const halves = new Uint16Array(raw, 0, values.length);
  for (let i = 0; i < bits.length; i++) {
    const value = bits[i]!;
    // Rounding would turn some NaNs into infinity, so every NaN becomes a quiet NaN of the same sign.
    const isNotANumber = (value & 0x7fff_ffff) > 0x7f80_0000;
    halves[i] = isNotANumber ? (value >>> 16) | 0x40 : (value + 0x7fff + ((value >>> 16) & 1)) >>> 16;
  }
}
