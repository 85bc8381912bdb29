/**
 * Turns what a model wrote into the input of a tool.
 *
 * Nothing of the input is trusted: not its type, keys or size. No message repeats more than a few words of it.
 */
import type { z } from 'zod';
import { SandboxError } from '../errors';
import type { Tool } from './definition';

/** How many faults one message names. */
const MAX_FAULTS = 5;

/** The input of the tool, or `INVALID_ARGUMENT` with everything that is wrong with it. */
export function readInput(tool: Tool, raw: unknown): unknown {
  const { name } = tool.definition;
  const given = asFields(name, raw === undefined || raw === null ? {} : raw);
  const fields: Record<string, unknown> = {};
  for (const field of Object.keys(tool.accepted.shape)) {
    const value = givenFor(field, given, tool.aliases);
    // Models that must pass every field pass null for those they do not need.
    if (value !== undefined && value !== null) fields[field] = withoutPrototype(field, value);
  }
  const parsed = tool.accepted.safeParse(fields);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.slice(0, MAX_FAULTS).map(describe);
  throw new SandboxError('INVALID_ARGUMENT', faults.join('; '));
}

function asFields(name: string, raw: unknown): Record<string, unknown> {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    throw new SandboxError('INVALID_ARGUMENT', `the input of ${name} must be an object, not ${kindOf(raw)}`);
  }
  return raw as Record<string, unknown>;
}

function givenFor(field: string, given: Record<string, unknown>, aliases: Readonly<Record<string, string>>): unknown {
  const names = [field, ...Object.keys(aliases).filter((alias) => aliases[alias] === field)];
  const present = names.filter(
    (name) => Object.hasOwn(given, name) && given[name] !== undefined && given[name] !== null,
  );
  const [first, second] = present;
  if (first === undefined) return undefined;
  if (second !== undefined && given[first] !== given[second]) {
    throw new SandboxError('INVALID_ARGUMENT', `${first} and ${second} mean the same but differ: pass one of them`);
  }
  return given[first];
}

/** A map must not be able to set an object's prototype. */
function withoutPrototype(field: string, value: unknown): unknown {
  if (typeof value === 'object' && value !== null && Object.hasOwn(value, '__proto__')) {
    throw new SandboxError('INVALID_ARGUMENT', `${field} may not have a key "__proto__"`);
  }
  return value;
}

function describe(issue: z.core.$ZodIssue): string {
  const path = issue.path.map(String).join('.').slice(0, 100) || 'the input';
  const isMissing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined');
  return `${path}: ${isMissing ? 'required' : issue.message.slice(0, 300)}`;
}

/** The kind of a value, without repeating any of it. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' || typeof value === 'undefined' ? `${typeof value}` : `a ${typeof value}`;
}
