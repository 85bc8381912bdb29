import { SandboxManager } from 'cofferdam';

const manager = new SandboxManager();
const sandbox = await manager.open({ image: process.env.COFFERDAM_INSTALL_IMAGE });
const { stdout } = await sandbox.exec('echo hello');
if (stdout === 'hello\n') console.log(`visited ${sandbox.id}`);
await manager.close();
