import { describeWithEngine, IMAGES, program } from '../support';

/** As if the package had never been installed; tells how often it was looked for. */
const HIDE = `
  const Module = require('node:module');
  const resolve = Module._resolveFilename;
  let looks = 0;
  Module._resolveFilename = function (name, ...rest) {
    if (!name.startsWith('@opentelemetry/')) return resolve.call(this, name, ...rest);
    looks += 1;
    throw Object.assign(new Error('Cannot find module ' + name), { code: 'MODULE_NOT_FOUND' });
  };`;

describeWithEngine('a program without @opentelemetry/api', () => {
  test('works as it would otherwise, and looks for the package once', async () => {
    const { ended } = program(`${HIDE}
      const before = looks;
      const manager = new SandboxManager({ defaults: { image: ${JSON.stringify(IMAGES.alpine)} }, telemetry: { details: true } });
      const sandbox = await manager.open();
      const { stdout } = await sandbox.exec('echo works');
      const failed = await sandbox.exec(['nope']).catch(({ code }) => code);
      await sandbox.files.upload(__filename === '[eval]' ? '/etc/hostname' : __filename, 'up');
      await manager.close();
      console.log(JSON.stringify([before, looks, stdout, failed]));`);
    expect(await ended).toMatchObject({ code: 0, output: '[0,1,"works\\n","COMMAND_NOT_FOUND"]\n' });
  });

  test('is not even asked for it when telemetry is off', async () => {
    const { ended } = program(`${HIDE}
      const manager = new SandboxManager({ defaults: { image: ${JSON.stringify(IMAGES.alpine)} }, telemetry: false });
      await (await manager.open()).exec('true');
      await manager.close();
      console.log(looks);`);
    expect(await ended).toMatchObject({ code: 0, output: '0\n' });
  });
});

describeWithEngine('a program with @opentelemetry/api, but without an SDK', () => {
  test('works as it would otherwise', async () => {
    const { ended } = program(`
      require('@opentelemetry/api');
      const manager = new SandboxManager({ defaults: { image: ${JSON.stringify(IMAGES.alpine)} } });
      console.log((await (await manager.open()).exec('echo works')).stdout.trim());
      await manager.close();`);
    expect(await ended).toMatchObject({ code: 0, output: 'works\n' });
  });
});
