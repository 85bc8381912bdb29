import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SpanStatusCode, trace } from '@opentelemetry/api';
import { describeWithEngine, IMAGES, testManager } from '../support';
import { points, span, spans, times } from './collector';

const image = IMAGES.alpine;

describeWithEngine('spans', () => {
  const manager = testManager({ defaults: { image }, store: { type: 'memory' } });

  test('an opening says which sandbox came of it', async () => {
    const sandbox = await manager.open({ session: 'isolated', timeoutMs: 30_000 });
    expect(span('sandbox.open')).toMatchObject({
      attributes: {
        'sandbox.id': sandbox.id,
        'sandbox.key': sandbox.key,
        'sandbox.image': image,
        'sandbox.created': true,
        'sandbox.timeout_seconds': 30,
      },
      status: { code: SpanStatusCode.UNSET },
      instrumentationScope: { name: 'cofferdam', version: require('../../package.json').version },
    });
  });

  test('a command says how it ended and how much it printed, and lasts as long as the call', async () => {
    const sandbox = await manager.open();
    const began = Date.now();
    const { execId } = await sandbox.exec('printf hällo; printf no >&2; sleep 0.05', { timeoutMs: 5_000 });
    const ended = Date.now();
    const exec = span('sandbox.exec');
    expect(exec.attributes).toEqual({
      'sandbox.id': sandbox.id,
      'sandbox.key': sandbox.key,
      'sandbox.image': image,
      'sandbox.timeout_seconds': 5,
      'sandbox.exec_id': execId,
      'sandbox.exit_code': 0,
      'sandbox.stdout_bytes': 6,
      'sandbox.stderr_bytes': 2,
      'sandbox.timed_out': false,
    });
    const { start, end } = times(exec);
    expect(start).toBeGreaterThanOrEqual(began);
    expect(end).toBeLessThanOrEqual(ended + 1);
    expect(end - start).toBeGreaterThanOrEqual(50);
  });

  test.each([
    ['exits with 3', 'exit 3', {}, '3'],
    ['runs out of time', 'sleep 100', { timeoutMs: 50 }, 'timed_out'],
  ])('a command that %s is an error in the trace, though a result to the caller', async (_, command, options, type) => {
    await (await manager.open()).exec(command, options);
    expect(span('sandbox.exec')).toMatchObject({
      attributes: { error: true, 'error.type': type },
      status: { code: SpanStatusCode.ERROR, message: type },
    });
  });

  test('a call that rejects has its code, and rejects as it would without a trace', async () => {
    const sandbox = await manager.open();
    const failing = sandbox.exec(['no-such-program']);
    await expect(failing).rejects.toMatchObject({
      code: 'COMMAND_NOT_FOUND',
      stack: expect.stringContaining('spans.test.ts'),
    });
    expect(span('sandbox.exec')).toMatchObject({ attributes: { 'error.type': 'COMMAND_NOT_FOUND' } });
    const reason = new Error('changed my mind');
    await expect(sandbox.exec('true', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(spans('sandbox.exec')[1]).toMatchObject({ attributes: { 'error.type': 'Error' } });
  });

  test('transfers say how much they carried', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-spans-'));
    try {
      writeFileSync(path.join(folder, 'a'), '12345');
      writeFileSync(path.join(folder, 'b'), '678');
      const sandbox = await manager.open();
      await sandbox.files.upload(folder, 'tree');
      await sandbox.files.download('tree', path.join(folder, 'back'));
      const { key } = await sandbox.publish('tree/a');
      await sandbox.stage(key, 'staged');
      const carried = ['upload', 'download', 'publish', 'stage'].map((name) => span(`sandbox.${name}`).attributes);
      expect(carried).toMatchObject([
        { 'sandbox.id': sandbox.id, 'sandbox.transfer.bytes': 8, 'sandbox.transfer.files': 2 },
        { 'sandbox.transfer.bytes': 8, 'sandbox.transfer.files': 2 },
        { 'sandbox.transfer.bytes': 5, 'sandbox.transfer.files': 1 },
        { 'sandbox.transfer.bytes': 5, 'sandbox.transfer.files': 1 },
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('a run has its phases below it, one after the other within its own time', async () => {
    const code = 'import time; time.sleep(0.1); open("a.txt", "w").write("a"); print("ok")';
    const result = await manager.run({ runtime: 'python', code, artifacts: ['*.txt'], timeoutMs: 20_000 });
    const run = span('sandbox.run');
    expect(run.attributes).toMatchObject({
      'sandbox.runtime': 'python',
      'sandbox.image': result.image,
      'sandbox.timeout_seconds': 20,
      'sandbox.exit_code': 0,
      'sandbox.stdout_bytes': 3,
      'sandbox.stderr_bytes': 0,
      'sandbox.artifacts_count': 1,
    });
    const children = spans().filter((each) => each.parentSpanContext?.spanId === run.spanContext().spanId);
    const phases = ['connect', 'prepare_files', 'exec', 'collect_artifacts', 'destroy'];
    expect(children.map(({ name }) => name)).toEqual(phases.map((name) => `sandbox.${name}`));
    let at = times(run).start;
    for (const [index, child] of children.entries()) {
      const { start, end } = times(child);
      expect(start).toBeCloseTo(at, 1);
      expect(end - start).toBeCloseTo(result.phases[index]?.durationMs ?? Number.NaN, 1);
      at = end;
    }
    expect(at).toBeLessThanOrEqual(times(run).end + 0.1);
    expect(times(span('sandbox.exec')).end - times(span('sandbox.exec')).start).toBeGreaterThanOrEqual(100);
    expect(await points('cofferdam.runs')).toContainEqual({ labels: { runtime: 'python', ok: true }, value: 1 });
    expect((await points('cofferdam.run.duration')).map(({ labels }) => labels)).toContainEqual({ runtime: 'python' });
  });

  test('belong to the span that the caller is in, across awaits and side by side', async () => {
    const sandbox = await manager.open();
    const tracer = trace.getTracer('user');
    const work = (name: string) =>
      tracer.startActiveSpan(name, async (own) => {
        await sandbox.exec('sleep 0.02');
        await new Promise((resolve) => setTimeout(resolve, 5));
        await sandbox.exec('true', { onStdout: () => {} });
        own.end();
        return own.spanContext();
      });
    const parents = await Promise.all([work('one'), work('two')]);
    for (const { traceId, spanId } of parents) {
      const children = spans('sandbox.exec').filter((each) => each.parentSpanContext?.spanId === spanId);
      expect(children.map((each) => each.spanContext().traceId)).toEqual([traceId, traceId]);
    }
  });

  test('are what is active while a callback is told of output', async () => {
    const sandbox = await manager.open();
    const seen: (string | undefined)[] = [];
    await sandbox.exec('echo out', { onStdout: () => seen.push(trace.getActiveSpan()?.spanContext().spanId) });
    expect(seen).toEqual([span('sandbox.exec').spanContext().spanId]);
    expect(trace.getActiveSpan()).toBeUndefined();
  });

  test('hold nothing of commands, variables, contents, paths and messages', async () => {
    const sandbox = await manager.open({ session: 'isolated', env: { A: 'hush-1' }, files: { 'hush-2': 'hush-3' } });
    await sandbox.exec('cat; echo hush-4', { env: { B: 'hush-5' }, stdin: 'hush-6', cwd: '/tmp' });
    await sandbox.exec(['hush-7']).catch(() => {});
    await sandbox.publish('hush-2');
    await sandbox.publish('hush-8').catch(() => {});
    await manager.open({ session: 'isolated', init: 'echo hush-9 >&2; exit 1' }).catch(() => {});
    const told = spans().map(({ name, attributes, status, events }) => ({ name, attributes, status, events }));
    expect(told.length).toBeGreaterThanOrEqual(6);
    expect(JSON.stringify(told)).not.toContain('hush');
  });

  test('have commands, paths and messages where the program wants details, and never contents or variables', async () => {
    const open = testManager({ defaults: { image }, store: { type: 'memory' }, telemetry: { details: true } });
    const sandbox = await open.open({ env: { A: 'hush-1' } });
    await sandbox.exec('cat', { env: { B: 'hush-2' }, stdin: 'hush-3' });
    await sandbox.exec(['shown', 'too']).catch(() => {});
    await sandbox.files.write('out.txt', 'hush-4');
    await sandbox.publish('out.txt');
    const [first, second] = spans('sandbox.exec');
    expect(first?.attributes['sandbox.command']).toBe('cat');
    expect(second?.attributes['sandbox.command']).toBe('["shown","too"]');
    expect(second?.status.message).toContain('shown');
    expect(span('sandbox.publish').attributes['sandbox.path']).toBe('out.txt');
    expect(JSON.stringify(spans().map(({ attributes, status }) => [attributes, status]))).not.toContain('hush');
  });

  test('are not made for a manager that shall not tell', async () => {
    const quiet = testManager({ defaults: { image }, telemetry: false });
    const sandbox = await quiet.open();
    await sandbox.exec('true');
    expect(spans()).toEqual([]);
  });
});

describeWithEngine('metrics', () => {
  const manager = testManager({ defaults: { image } });

  test('count openings and commands, with how long they took', async () => {
    const sandbox = await manager.open({ session: 'isolated' });
    const before = await points('cofferdam.execs');
    const count = (all: typeof before, ok: boolean) =>
      all.find(({ labels }) => labels.image === image && labels.ok === ok)?.value ?? 0;
    await sandbox.exec('true');
    await sandbox.exec('false');
    await sandbox.exec(['nope']).catch(() => {});
    const after = await points('cofferdam.execs');
    expect(Number(count(after, true)) - Number(count(before, true))).toBe(1);
    expect(Number(count(after, false)) - Number(count(before, false))).toBe(2);
    expect(await points('cofferdam.exec.duration')).toContainEqual({
      labels: { image },
      value: expect.objectContaining({ count: expect.any(Number), min: expect.any(Number) }),
    });
    expect(await points('cofferdam.opens')).toContainEqual({
      labels: { image, created: true, ok: true },
      value: expect.any(Number),
    });
    expect((await points('cofferdam.open.duration')).length).toBeGreaterThan(0);
  });

  test('count openings that fail', async () => {
    const policed = testManager({ policy: { allowedImages: ['nothing'] } });
    await expect(policed.open({ image: 'other' })).rejects.toMatchObject({ code: 'IMAGE_NOT_ALLOWED' });
    expect(await points('cofferdam.opens')).toContainEqual({ labels: { image: 'other', ok: false }, value: 1 });
  });
});
