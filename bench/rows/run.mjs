// A Python one-liner in a box of its own: from the code to its output, with the box gone. Ours comes from the warm pool;
// dockerode's is made, started, used and removed.

import Docker from 'dockerode';
import { compare, timed } from '../measure.mjs';
import { withPool } from '../pool.mjs';
import { IDLE_COMMAND, labelsOf } from '../ring.mjs';

const PLAN = { rounds: 20, settleMs: 250 };
const IMAGE = 'python:3.11-slim';
const CODE = 'print(6 * 7)';

export async function run({ planned, runId }) {
  return withPool({ runId, image: IMAGE }, async (manager, full) => {
    const ours = {
      id: 'cofferdam',
      run: () => manager.run({ image: IMAGE, code: CODE }),
      after: full,
    };
    const dockerode = { id: 'dockerode', run: () => runByDockerode(runId), after: () => {} };
    const sample = async (contestant) => {
      const took = await timed(async () => {
        const { stdout } = await contestant.run();
        if (stdout !== '42\n') throw new Error(`a run of ${CODE} printed ${JSON.stringify(stdout)}`);
      });
      await contestant.after();
      return took;
    };
    const values = await compare([ours, dockerode], sample, planned(PLAN));
    return [{ id: 'run', title: 'run a Python one-liner', unit: 'ms', values }];
  });
}

async function runByDockerode(runId) {
  const docker = new Docker();
  const container = await docker.createContainer({
    Image: IMAGE,
    Cmd: IDLE_COMMAND,
    Labels: labelsOf(runId),
    HostConfig: { NetworkMode: 'none' },
  });
  try {
    await container.start();
    const exec = await container.exec({ Cmd: ['python', '-c', CODE], AttachStdout: true, AttachStderr: true });
    const stream = await exec.start({ hijack: true, stdin: false });
    const stdout = [];
    const collector = { write: (chunk) => stdout.push(chunk) };
    docker.modem.demuxStream(stream, collector, { write: () => {} });
    await new Promise((resolve, reject) => stream.once('end', resolve).once('error', reject));
    return { stdout: Buffer.concat(stdout).toString() };
  } finally {
    await container.remove({ force: true });
  }
}
