/**
 * Which replica serves a group: rendezvous hashing (Thaler and Ravishankar, 1998), bounded by load (Mirrokni et al.,
 * "Consistent hashing with bounded loads", 2016).
 *
 * A group goes to the same replica as long as that replica is there and not overloaded, so its prompt is computed once.
 * When a replica is added or removed, only the groups that it gains or loses move.
 */

/** What the choice needs to know about a replica. */
export interface Candidate {
  readonly name: string;
  /** Number of calls that it works on or that wait in its queue. */
  readonly load: number;
}

/** How far above the average a replica's load may lie. */
const LOAD_FACTOR = 1.25;
/** Calls allowed above the bound, so that groups keep their replica when there is hardly any load. */
const LOAD_SLACK = 8;

/** The replica that serves `key`; undefined when there is none. */
export function chooseReplica<T extends Candidate>(key: string, candidates: readonly T[]): T | undefined {
  if (candidates.length <= 1) return candidates[0];
  const total = candidates.reduce((sum, { load }) => sum + load, 0);
  const bound = Math.ceil((LOAD_FACTOR * (total + 1)) / candidates.length) + LOAD_SLACK;
  let best: T | undefined;
  let bestWeight = -1;
  for (const candidate of candidates) {
    if (candidate.load >= bound) continue;
    const weight = hash(`${key}\u0000${candidate.name}`);
    if (weight > bestWeight || (weight === bestWeight && best !== undefined && candidate.name < best.name)) {
      best = candidate;
      bestWeight = weight;
    }
  }
  return best;
}

/** FNV-1a over UTF-16 units with the finaliser of MurmurHash3: 32 well-mixed bits. */
function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
