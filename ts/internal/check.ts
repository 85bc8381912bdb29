/** Checks the shape of arguments, where types end. The core checks their meaning. */
import { SandboxError } from '../errors';
import type { Command } from '../options';

function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  return value === null || typeof value !== 'object' ? String(value) : Object.prototype.toString.call(value);
}

export function invalid(name: string, expected: string, value: unknown): SandboxError {
  return new SandboxError('INVALID_ARGUMENT', `${name} must be ${expected}, not ${describe(value)}`);
}

/** A string that has a UTF-8 form: no lone surrogates. */
export function text(name: string, value: unknown): string {
  if (typeof value !== 'string') throw invalid(name, 'a string', value);
  if (!value.isWellFormed()) throw invalid(name, 'well-formed Unicode', value);
  return value;
}

export function optionalText(name: string, value: unknown): string | undefined {
  return value === undefined ? undefined : text(name, value);
}

export function command(value: unknown): string | string[] {
  if (typeof value === 'string') return text('command', value);
  if (!Array.isArray(value)) throw invalid('command', 'a string or an array of strings', value);
  return (value as Command[]).map((word, index) => text(`command[${index}]`, word));
}

/** A non-negative integer. */
export function count(name: string, value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) {
    throw invalid(name, 'a non-negative integer', value);
  }
  return value;
}

export function optionalCount(name: string, value: unknown): number | undefined {
  return value === undefined ? undefined : count(name, value);
}

export function list(name: string, value: unknown): string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw invalid(name, 'an array of strings', value);
  return value.map((entry, index) => text(`${name}[${index}]`, entry));
}

/** A non-negative number of milliseconds. */
export function millis(name: string, value: unknown): number {
  if (typeof value !== 'number' || Number.isNaN(value) || value < 0) {
    throw invalid(name, 'a non-negative number of milliseconds', value);
  }
  return value;
}

/** Milliseconds; 0 and `Infinity` mean no limit, and become `undefined`. */
export function timeout(name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const ms = millis(name, value);
  return ms === 0 || ms === Number.POSITIVE_INFINITY ? undefined : ms;
}

export function texts(name: string, value: Record<string, string> | undefined): Record<string, string> {
  const checked: Record<string, string> = {};
  for (const [key, entry] of Object.entries(value ?? {})) {
    checked[text(`a key of ${name}`, key)] = text(`${name}.${key}`, entry);
  }
  return checked;
}

export function bytes(name: string, value: unknown): Uint8Array {
  if (typeof value === 'string') return Buffer.from(value);
  // Not instanceof: in jest a Uint8Array may come from another realm.
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  throw invalid(name, 'a string or a Uint8Array', value);
}

export function object<T extends object>(name: string, value: T): T {
  if (typeof value !== 'object' || value === null) throw invalid(name, 'an object', value);
  return value;
}

export function port(name: string, value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > 65_535) {
    throw invalid(name, 'a port from 1 to 65535', value);
  }
  return value;
}

export function optionalFunction(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') throw invalid(name, 'a function', value);
}

export function boolean(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw invalid(name, 'true or false', value);
  return value;
}
