/** Formats numbers and times for people. */

const SECOND_MS = 1_000;
const MINUTE_S = 60;
const HOUR_S = 3_600;

/** `0:07`, `12:05`, `3:02:09`. */
export function clock(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / SECOND_MS));
  const pad = (value: number) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / HOUR_S), Math.floor((seconds % HOUR_S) / MINUTE_S)];
  const tail = pad(seconds % MINUTE_S);
  return hours > 0 ? `${hours}:${pad(minutes)}:${tail}` : `${minutes}:${tail}`;
}

/** `38 s`, `12 min`, `5 h`: a length of time. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / SECOND_MS));
  if (seconds < 2 * MINUTE_S) return `${seconds} s`;
  if (seconds < 2 * HOUR_S) return `${Math.round(seconds / MINUTE_S)} min`;
  return `${Math.round(seconds / HOUR_S)} h`;
}

/** Three significant digits: `0.412`, `81.2k`, `127`; `-` for undefined and NaN. */
export function figure(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return "-";
  const size = Math.abs(value);
  if (size >= 999_500) return `${(value / 1e6).toPrecision(3)}M`;
  if (size >= 9_995) return `${(value / 1e3).toPrecision(3)}k`;
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en-US");
  return value.toPrecision(3);
}

/** A share between 0 and 1, always with two decimals, so that columns keep their width. */
export function share(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? "-" : value.toFixed(2);
}

/** A share as a percentage. */
export function percentText(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}

/** A token by its text, or by its id where the text is not known. */
export function tokenText(id: number, text: string | undefined): string {
  return text === undefined ? `#${id}` : JSON.stringify(text);
}
