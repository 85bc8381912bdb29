import { SpanStatusCode, trace } from '@opentelemetry/api';
import { createToolset } from 'cofferdam/tools';
import { describeWithEngine, IMAGES, testManager } from '../support';
import { points, span, spans } from './collector';

describeWithEngine('the call of a tool', () => {
  const manager = testManager({ defaults: { image: IMAGES.alpine } });

  test('is a span of the tool’s name below the caller’s, with all that it did below it', async () => {
    await using tools = createToolset(manager);
    const agent = await trace.getTracer('user').startActiveSpan('agent', async (own) => {
      await tools.call('sandbox_exec', { command: 'exit 3' });
      own.end();
      return own.spanContext();
    });
    const call = span('sandbox_exec');
    expect(call.parentSpanContext?.spanId).toBe(agent.spanId);
    expect(call.attributes).toMatchObject({
      'gen_ai.tool.name': 'sandbox_exec',
      'gen_ai.operation.name': 'execute_tool',
    });
    for (const name of ['sandbox.open', 'sandbox.exec']) {
      expect(span(name).parentSpanContext?.spanId).toBe(call.spanContext().spanId);
      expect(span(name).spanContext().traceId).toBe(agent.traceId);
    }
    expect(await points('cofferdam.tool.calls')).toContainEqual({
      labels: { tool: 'sandbox_exec', ok: expect.any(Boolean) },
      value: 1,
    });
  });

  test('that could not be carried out has its code, and nothing that the model wrote', async () => {
    await using tools = createToolset(manager);
    await tools.call('sandbox_fs_read', { path: '/hush' });
    await tools.call('hush', { hush: 'hush' });
    expect(span('sandbox_fs_read')).toMatchObject({
      attributes: { 'error.type': 'FILE_NOT_FOUND' },
      status: { code: SpanStatusCode.ERROR },
    });
    expect(span('unknown').attributes['error.type']).toBe('INVALID_ARGUMENT');
    expect(JSON.stringify(spans().map(({ name, attributes, status }) => [name, attributes, status]))).not.toContain(
      'hush',
    );
  });
});
