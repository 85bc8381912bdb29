/** From what the engine records to what callers see. */
import type { EngineInfo, SandboxInfo } from '../options';
import type { NativeEngineInfo, NativeSandboxInfo } from './binding';

export function toSandboxInfo(native: NativeSandboxInfo): SandboxInfo {
  const { createdAtMs, expiresAtMs, ...rest } = native;
  return {
    ...rest,
    createdAt: new Date(createdAtMs),
    expiresAt: expiresAtMs === undefined || expiresAtMs === null ? null : new Date(expiresAtMs),
  };
}

export function toEngineInfo(native: NativeEngineInfo): EngineInfo {
  return {
    backend: native.backend,
    version: native.version,
    apiVersion: native.apiVersion,
    abilities: JSON.parse(native.abilities),
    limits: native.limits as EngineInfo['limits'],
  };
}
