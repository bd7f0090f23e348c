// Values that scenarios name in words: durations, sizes, starts, names.

import assert from 'node:assert/strict';

import { PollingStrategy } from 'iggy';

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const SIZES = { KiB: 1 << 10, MiB: 1 << 20, GiB: 1 << 30 };

/** Milliseconds of `30 s`, `50 ms`, `1h`. */
export function duration(text) {
  const found = /^(\d+) ?(ms|s|m|h)$/.exec(text);
  assert(found, text);
  return Number(found[1]) * UNITS[found[2]];
}

/** Bytes of `2MiB`. */
export function size(text) {
  const found = /^(\d+)(KiB|MiB|GiB)$/.exec(text);
  assert(found, text);
  return Number(found[1]) * SIZES[found[2]];
}

/** A start in words. */
export function start(text, notedTime) {
  const words = {
    'the first message': PollingStrategy.first,
    'the last messages': PollingStrategy.last,
    'the next message': PollingStrategy.next,
    'the noted time': PollingStrategy.timestamp(notedTime),
  };
  return words[text] ?? PollingStrategy.offset(BigInt(text.replace('offset ', '')));
}

/** `"a" and "b"`. */
export function names(text) {
  return text.split(' and ').map((name) => name.replaceAll('"', ''));
}

/** Whole numbers from one to another, both included. */
export function range(first, last) {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
