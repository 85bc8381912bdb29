import { describeWithEngine, program, testManager, unique } from '../support';
import { done, refused, tools } from './toolbox';

describeWithEngine('tools reach', () => {
  const manager = testManager();
  const [workflow, foreign] = [unique('mine'), unique('theirs')];
  const scope = { workflow };

  afterAll(async () => {
    await manager.endScope({ workflow });
    await manager.endScope({ workflow: foreign });
  });

  /** All ways in which a model can name a sandbox. */
  async function expectOutOfReach(own: ReturnType<typeof tools>, id: string, execId: string) {
    const inputs = { path: 'secret.txt', content: 'x', command: 'cat secret.txt', exec_id: execId };
    const more = { old_text: 'secret', new_text: 'known', glob: '**' };
    for (const { name } of own.tools) {
      if (name === 'sandbox_open') continue;
      const failure = await refused(own, name, { ...inputs, ...more, sandbox_id: id });
      expect(failure).toMatchObject({
        code: 'SANDBOX_NOT_FOUND',
        error: `there is no sandbox "${id}" for these tools`,
      });
    }
  }

  test('the other sessions of their scope, by name and by id, whoever opened them', async () => {
    const step1 = tools(manager, { scope });
    const { sandbox_id, session_id } = await done(step1, 'sandbox_open', { session: 'db' });
    await done(step1, 'sandbox_fs_write', { path: 'rows', content: '42', sandbox_id });
    const { exec_id } = await done(step1, 'sandbox_exec', { command: 'echo late', stream: true, sandbox_id });

    for (const input of [{ sandbox_id }, { sandbox_id: session_id }, { session_id: sandbox_id }]) {
      const step2 = tools(testManager(), { scope: { ...scope, agent: 'tester' } });
      expect(await done(step2, 'sandbox_fs_read', { path: 'rows', ...input })).toMatchObject({ content: '42' });
      expect(await done(step2, 'sandbox_exec_wait', { exec_id, ...input })).toMatchObject({ stdout: 'late\n' });
    }
    const byName = tools(manager, { scope, session: 'db' });
    expect(await done(byName, 'sandbox_fs_read', { path: 'rows' })).toMatchObject({ content: '42' });
    expect(await done(byName, 'sandbox_exec_wait', { exec_id })).toMatchObject({ stdout: 'late\n' });
  });

  test('a command of the scope’s own session before they opened anything', async () => {
    const { exec_id } = await done(tools(manager, { scope }), 'sandbox_exec', { command: 'echo first', stream: true });
    const later = tools(testManager(), { scope });
    expect(await done(later, 'sandbox_exec_wait', { exec_id })).toMatchObject({ done: true, stdout: 'first\n' });
  });

  test('no sandbox and no command of another scope, of the same manager or of another program', async () => {
    const theirs = await manager.open({ image: 'linux', scope: { workflow: foreign } });
    await theirs.files.write('secret.txt', 'secret');
    const { execId } = await theirs.exec('cat secret.txt');
    const own = tools(manager, { scope });
    await expectOutOfReach(own, theirs.id, execId);
    await expectOutOfReach(own, theirs.key, execId);
    await done(own, 'sandbox_open');
    for (const name of ['sandbox_exec_read', 'sandbox_exec_wait']) {
      expect(await refused(own, name, { exec_id: execId })).toMatchObject({ code: 'PROCESS_NOT_FOUND' });
    }
    const other = program(`
      const manager = new SandboxManager();
      const sandbox = await manager.open({ image: 'linux', scope: { agent: ${JSON.stringify(foreign)} } });
      const { execId } = await sandbox.exec('true');
      console.log(JSON.stringify([sandbox.id, execId]));
      process.stdin.resume();
      setInterval(() => {}, 1000);
    `);
    const [id, exec] = JSON.parse(await other.line());
    await expectOutOfReach(own, id, exec);
    expect(await theirs.files.readText('secret.txt')).toBe('secret');
    other.child.kill('SIGKILL');
    await other.ended;
    await manager.endScope({ agent: foreign });
  });

  test('nothing but their own without a scope: not the manager’s sandbox, not that of other tools', async () => {
    const hosts = await manager.open({ image: 'linux' });
    await hosts.files.write('secret.txt', 'secret');
    const { execId } = await hosts.exec('true');
    const [one, two] = [tools(manager), tools(manager)];
    await done(one, 'sandbox_fs_write', { path: 'secret.txt', content: 'of one' });
    const { sandbox_id, session_id } = await done(one, 'sandbox_open');
    for (const id of [hosts.id, hosts.key, sandbox_id, session_id]) await expectOutOfReach(two, id as string, execId);
    for (const session of [undefined, 'default', 'isolated', String(session_id).split(':').at(-1)]) {
      const opened = await done(two, 'sandbox_open', { session });
      expect([hosts.id, sandbox_id]).not.toContain(opened.sandbox_id);
      const read = await two.call('sandbox_fs_read', { path: 'secret.txt', sandbox_id: opened.sandbox_id });
      expect(read).toMatchObject({ code: 'FILE_NOT_FOUND' });
    }
  });

  test('the manager’s own session where the host names it', async () => {
    const session = unique('named');
    const hosts = await manager.open({ image: 'linux', session });
    const named = tools(manager, { session });
    expect(await done(named, 'sandbox_open')).toMatchObject({ sandbox_id: hosts.id, created: false });
    await named.close();
    expect(await hosts.exec('true')).toMatchObject({ ok: true });
    await hosts.close();
  });

  test('no isolated session of others, even in their own scope', async () => {
    const [one, two] = [tools(manager, { scope, session: 'isolated' }), tools(manager, { scope, session: 'isolated' })];
    const mine = await done(one, 'sandbox_open');
    const theirs = await done(two, 'sandbox_open');
    expect(mine.sandbox_id).not.toBe(theirs.sandbox_id);
    await expectOutOfReach(one, theirs.sandbox_id as string, 'exec_1');
    const guessed = await done(one, 'sandbox_open', { session: String(theirs.session_id).split(':').at(-1) });
    expect(guessed.sandbox_id).not.toBe(theirs.sandbox_id);
  });
});
