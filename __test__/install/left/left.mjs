// Every sandbox that a consumer had is gone, or goes by itself: those of terminated threads end with their program.
import { SandboxManager } from 'cofferdam';

const had = new Set(process.argv.slice(2));
const manager = new SandboxManager();
for (const patience = Date.now() + 20_000; ; ) {
  const left = (await manager.list()).filter(({ id }) => had.has(id));
  if (left.length === 0) break;
  if (Date.now() > patience) throw new Error(`of ${had.size} sandboxes, these are left: ${left.map(({ id }) => id)}`);
  await new Promise((resolve) => setTimeout(resolve, 50));
}
await manager.close();
