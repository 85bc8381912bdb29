/** Converts records of the addon to public types. */
import type { EngineInfo, SandboxEvent, SandboxInfo } from '../options';
import type { NativeEngineInfo, NativeEvent, NativeSandboxInfo } from './binding';

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
    ...(native.tier === undefined ? {} : { tier: native.tier }),
    abilities: JSON.parse(native.abilities),
    limits: native.limits as EngineInfo['limits'],
    ...(native.tried?.length ? { tried: native.tried as EngineInfo['tried'] } : {}),
  };
}

export function toSandboxEvent(native: NativeEvent): SandboxEvent {
  const { expiresAtMs, ...details } = JSON.parse(native.details);
  for (const name of Object.keys(details)) if (details[name] === null) delete details[name];
  return {
    type: native.type,
    at: new Date(native.atMs),
    ...(native.sandboxId === undefined ? {} : { sandboxId: native.sandboxId, key: native.key }),
    ...details,
    ...(typeof expiresAtMs === 'number' ? { expiresAt: new Date(expiresAtMs) } : {}),
  } as SandboxEvent;
}
