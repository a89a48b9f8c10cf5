/** Whether this reader may change anything; the API says so once. */

import { read } from "./api.ts";

let asked: Promise<boolean> | undefined;

/** Never rejects: who gets no answer may not. */
export function canWrite(): Promise<boolean> {
  asked ??= read<{ readonly canWrite: boolean }>("/access").then(
    (answer) => answer.canWrite,
    () => {
      // Asked again by the next view, as the tracer may have been away for a moment.
      asked = undefined;
      return false;
    },
  );
  return asked;
}

/** Why there is no form. */
export const READ_ONLY =
  "Nothing can be changed on this page: its tracer has no token (HONE_TRACER_TOKEN), so everybody who reaches it could.";
