// Samples and what is said of them. Contestants take turns, in an order that rotates, so that what else happens on the
// machine hits all of them alike; a turn is a slice of time with at least one sample, so that a fast contestant gets more.

import { setTimeout as sleep } from 'node:timers/promises';
import { assertNotEnding } from '../scripts/lifetime.mjs';

/** Between two turns: the engine still tidies up after a command that is over, and that is not the next one's fault. */
const SETTLE_MS = 25;

/**
 * Plans as a run wants them: `quick` takes a few samples only.
 *
 * @returns {<Plan extends { rounds: number }>(plan: Plan) => Plan}
 */
export function planner(quick) {
  return (plan) => (quick ? { ...plan, rounds: Math.min(plan.rounds, 2), turnMs: (plan.turnMs ?? 0) / 5 } : plan);
}

/** How long `work` takes, in milliseconds. */
export async function timed(work) {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/**
 * @param {{ id: string }[]} contestants
 * @param {(contestant: any) => Promise<number>} sample resolves to one sample
 * @param {{ rounds: number, warmUps?: number, turnMs?: number, settleMs?: number }} plan a turn goes on for `turnMs`,
 *   with at least one sample
 * @returns {Promise<Record<string, Summary>>} by the contestant's id
 */
export async function compare(contestants, sample, plan) {
  const { rounds, warmUps = 1, turnMs = 0, settleMs = SETTLE_MS } = plan;
  const samples = new Map(contestants.map(({ id }) => [id, []]));
  for (const contestant of contestants) {
    for (let count = 0; count < warmUps; count += 1) await checked(contestant, sample);
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const contestant of rotated(contestants, round)) {
      await sleep(settleMs);
      const taken = samples.get(contestant.id);
      const turnEnds = performance.now() + turnMs;
      do {
        taken.push(await checked(contestant, sample));
      } while (performance.now() < turnEnds);
    }
  }
  return Object.fromEntries([...samples].map(([id, values]) => [id, summary(values)]));
}

async function checked(contestant, sample) {
  assertNotEnding();
  try {
    return await sample(contestant);
  } catch (error) {
    error.message = `${contestant.id}: ${error.message}`;
    throw error;
  }
}

function rotated(list, by) {
  const start = by % list.length;
  return [...list.slice(start), ...list.slice(0, start)];
}

/**
 * @typedef {{ p50: number, p95: number, min: number, max: number, mean: number, count: number }} Summary
 * @param {number[]} values
 * @returns {Summary}
 */
export function summary(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const mean = sorted.reduce((sum, value) => sum + value, 0) / sorted.length;
  return {
    p50: percentile(sorted, 0.5),
    p95: percentile(sorted, 0.95),
    min: sorted[0],
    max: sorted.at(-1),
    mean,
    count: sorted.length,
  };
}

/** The same samples in a unit that runs the other way: milliseconds as so many per second. */
export function inverted({ p50, p95, min, max, mean, count }, convert) {
  return { p50: convert(p50), p95: convert(p95), min: convert(max), max: convert(min), mean: convert(mean), count };
}

function percentile(sorted, share) {
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.ceil(place);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}
