/** A program of this checkout in a container that Docker itself confines, without network. */
import { once } from 'node:events';
import path from 'node:path';
import Docker from 'dockerode';

/** The checkout, which is in the container at the same place. */
export const CHECKOUT = path.resolve(__dirname, '..');

/** Runs `node <words>`; gives its exit code, and what it printed on a terminal. */
export async function inContainer(
  words: string[],
  freedom: Docker.HostConfig = {},
): Promise<{ code: number; output: string }> {
  const container = await new Docker().createContainer({
    Image: 'node:20-slim',
    Cmd: ['node', ...words],
    Tty: true,
    HostConfig: { ...freedom, NetworkMode: 'none', Binds: [`${CHECKOUT}:${CHECKOUT}:ro`] },
  });
  try {
    const stream = await container.attach({ stream: true, stdout: true });
    let output = '';
    stream.on('data', (data) => {
      output += data;
    });
    const all = once(stream, 'end');
    await container.start();
    const { StatusCode: code } = await container.wait();
    await all;
    return { code, output };
  } finally {
    await container.remove({ force: true });
  }
}
