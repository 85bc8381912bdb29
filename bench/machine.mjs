// The machine and the engine that the numbers were taken on.

import { readFileSync } from 'node:fs';
import os from 'node:os';
import Docker from 'dockerode';
import { version } from '../index.mjs';
import { runProgram } from './program.mjs';

export async function machine() {
  const docker = new Docker();
  const [engine, info] = await Promise.all([docker.version(), docker.info()]);
  return {
    cofferdam: version,
    commit: await firstLine('git', ['rev-parse', '--short', 'HEAD']),
    cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
    cores: os.cpus().length,
    memoryGib: Math.round((os.totalmem() / 1024 ** 3) * 10) / 10,
    kernel: `${os.type()} ${os.release()}`,
    arch: os.arch(),
    node: process.version,
    engine: engine.Version,
    engineApi: engine.ApiVersion,
    storageDriver: info.Driver,
    cgroupVersion: info.CgroupVersion ?? null,
    dockerCli: await firstLine('docker', ['--version']),
    dockerode: dockerodeVersion(),
  };
}

async function firstLine(program, args) {
  try {
    const { exitCode, stdout } = await runProgram(program, args);
    return exitCode === 0 ? stdout.split('\n')[0] : null;
  } catch {
    return null;
  }
}

function dockerodeVersion() {
  const manifest = new URL('../node_modules/dockerode/package.json', import.meta.url);
  return JSON.parse(readFileSync(manifest, 'utf8')).version;
}
