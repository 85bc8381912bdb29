// A harness of @ai-sdk/harness in our sandboxes, as the package itself uses them: bootstrap, bridge, stop, resume, destroy.
import { HarnessAgent, prepareSandboxForHarness } from '@ai-sdk/harness/agent';
import { getRestrictedSandboxSession, waitForBridgeReady, writeSkills } from '@ai-sdk/harness/utils';
import { SandboxManager } from 'cofferdam';
import { createCofferdamSandbox } from 'cofferdam/ai';

const [sessionId] = process.argv.slice(2);
const seen = {};

// Prints that it is ready as the bridges of AI SDK do, and answers whoever comes.
const BRIDGE = `
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"hello from " + self.path.encode())
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 4096), Handler)
print(json.dumps({"type": "bridge-ready", "port": 4096}), flush=True)
server.serve_forever()
`;

const bootstrap = {
  harnessId: 'test-harness',
  bootstrapDir: '.harness',
  files: [{ path: 'bridge.py', content: BRIDGE }],
  commands: [{ command: 'date +%s%N >> installed' }],
};

const harness = {
  specificationVersion: 'harness-v1',
  harnessId: 'test-harness',
  builtinTools: {},
  getBootstrap: async () => bootstrap,
  async doStart(options) {
    seen.starts = (seen.starts ?? 0) + 1;
    return {
      sessionId: options.sessionId,
      isResume: options.resumeFrom !== undefined,
      doStop: async () => ({
        type: 'resume-session',
        harnessId: 'test-harness',
        specificationVersion: 'harness-v1',
        data: {},
      }),
      doDetach: async () => ({
        type: 'resume-session',
        harnessId: 'test-harness',
        specificationVersion: 'harness-v1',
        data: {},
      }),
      doDestroy: async () => {},
    };
  },
};

const manager = new SandboxManager();
const sandbox = createCofferdamSandbox({ manager, image: 'python', persist: true });
const agent = new HarnessAgent({ harness, sandbox });

const session = await agent.createSession({ sessionId });
const running = session.getSandboxSession();
seen.id = running.id;
seen.ports = running.ports;
seen.files = (await running.run({ command: 'find . -type f | sort' })).stdout;

const bridgePath = (await running.run({ command: 'find $PWD -name bridge.py' })).stdout.trim();
const proc = await running.spawn({ command: `python ${bridgePath}` });
const ready = await waitForBridgeReady({
  proc,
  sandbox: running,
  bridgeStateDir: '/workspace/state',
  bridgeType: 'test',
  timeoutMs: 30_000,
});
seen.ready = { port: ready.port, source: ready.source };
const { url } = await running.getPortEndpoint({ port: 4096, protocol: 'http' });
seen.page = await (await fetch(`${url}/path`)).text();
seen.sameUrl = (await running.getPortUrl({ port: 4096 })) === url;
seen.ws = (await running.getPortEndpoint({ port: 4096, protocol: 'ws' })).url.replace(/\d+$/, 'PORT');
seen.otherPort = await running.getPortEndpoint({ port: 5000 }).then(
  () => 'resolved',
  (error) => error.code,
);
await running.setPorts([5000]);
seen.gone = await fetch(url).then(
  () => 'answered',
  () => 'refused',
);
seen.restricted = Object.keys(getRestrictedSandboxSession(running)).filter((key) =>
  ['stop', 'destroy', 'setPorts'].includes(key),
);
const skill = { name: 'sums', description: 'adds', content: 'Add.' };
seen.skills = await writeSkills({ sandbox: running, homePath: '/workspace', skillsDir: 'skills', skills: [skill] });

const resumeFrom = await session.stop();
seen.stateAfterStop = (await manager.list({ scope: { agent: sessionId } })).map(({ state }) => state);

// Another process would do the same.
const other = createCofferdamSandbox({ image: 'python', persist: true });
const resumed = await new HarnessAgent({ harness, sandbox: other }).createSession({ sessionId, resumeFrom });
const back = resumed.getSandboxSession();
seen.sameId = back.id === seen.id;
seen.kept = await back.readTextFile({ path: 'skills/sums/SKILL.md' });
seen.installs = (await back.run({ command: 'find . -name installed -exec wc -l {} +' })).stdout.trim().split(' ')[0];
await resumed.destroy();
seen.leftAfterDestroy = await manager.list({ scope: { agent: sessionId } });
seen.resumeOfNothing = await other.resumeSession({ sessionId }).then(
  () => 'resumed',
  (error) => error.code,
);

// What a template is made with, in a sandbox that nobody comes back to and that does not persist.
const plain = createCofferdamSandbox({ manager, image: 'python' });
const first = [];
const template = await plain.createSession({
  onFirstCreate: async (given) => first.push((await given.run({ command: 'pwd' })).stdout),
});
seen.first = first;
const { recipeIdentities } = await prepareSandboxForHarness({ harnesses: [harness], session: template.restricted() });
seen.prepared = Object.keys(recipeIdentities);
await template.stop();
await template.stop();
await template.destroy();
seen.broken = await plain
  .createSession({ sessionId: `${sessionId}-broken`, onFirstCreate: () => Promise.reject(new Error('recipe failed')) })
  .catch((error) => error.message);
seen.leftOfBroken = await manager.list({ scope: { agent: `${sessionId}-broken` } });

await other.close();
await manager.close();
console.log(JSON.stringify(seen));
