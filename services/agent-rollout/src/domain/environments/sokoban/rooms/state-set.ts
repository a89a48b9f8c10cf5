/**
 * A set of states that are a few words of 32 bits each, in the order in which they were added.
 *
 * A search over hundreds of thousands of rooms takes several times as long with a `Set` of texts. Here all states lie in one array,
 * and a table with open addressing finds them by their hash.
 */

const FIRST_CAPACITY = 256;

export class StateSet {
  readonly #width: number;
  /** The states one after the other. */
  #words: Uint32Array;
  /** Numbers of states plus one at the places of their hashes; 0 = free. At most half of the places are taken. */
  #places: Uint32Array;
  #size = 0;

  /** @param width words of a state */
  constructor(width: number) {
    this.#width = width;
    this.#words = new Uint32Array(FIRST_CAPACITY * width);
    this.#places = new Uint32Array(FIRST_CAPACITY * 2);
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a copy of a state. @returns false when the set had it already */
  add(state: Uint32Array): boolean {
    const mask = this.#places.length - 1;
    let place = hashOf(state) & mask;
    for (let number = this.#places[place]!; number !== 0; number = this.#places[place]!) {
      if (this.#equals(number - 1, state)) return false;
      place = (place + 1) & mask;
    }
    if (this.#size * 2 === this.#places.length) {
      this.#grow();
      return this.add(state);
    }
    this.#words.set(state, this.#size * this.#width);
    this.#places[place] = ++this.#size;
    return true;
  }

  /** Copies the state with a number, counted from 0 in the order of addition. */
  read(index: number, into: Uint32Array): void {
    for (let word = 0; word < this.#width; word++) into[word] = this.#words[index * this.#width + word]!;
  }

  #equals(index: number, state: Uint32Array): boolean {
    const begin = index * this.#width;
    for (let word = 0; word < this.#width; word++) {
      if (this.#words[begin + word] !== state[word]) return false;
    }
    return true;
  }

  #grow(): void {
    const words = new Uint32Array(this.#words.length * 2);
    words.set(this.#words);
    this.#words = words;
    this.#places = new Uint32Array(this.#places.length * 2);
    const mask = this.#places.length - 1;
    const state = new Uint32Array(this.#width);
    for (let index = 0; index < this.#size; index++) {
      this.read(index, state);
      let place = hashOf(state) & mask;
      while (this.#places[place] !== 0) place = (place + 1) & mask;
      this.#places[place] = index + 1;
    }
  }
}

/** The finaliser of MurmurHash3 over each word, in 32 bits. */
function hashOf(state: Uint32Array): number {
  let hash = 0;
  for (const word of state) {
    hash = Math.imul(hash, 31) ^ word;
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    hash ^= hash >>> 16;
  }
  return hash >>> 0;
}
