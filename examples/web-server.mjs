// A web server in a sandbox without network, reached from the host through the guest: this is how an agent shows what it built.
import { SandboxManager } from 'cofferdam';

const manager = new SandboxManager();

const server = `
const http = require('node:http');
let visits = 0;
http.createServer((request, response) => {
  visits += 1;
  console.log(request.method, request.url);
  response.end(JSON.stringify({ path: request.url, visits, network: Object.keys(require('node:os').networkInterfaces()) }));
}).listen(3000, () => console.log('listening'));
`;

try {
  const sandbox = await manager.open({ image: 'node', files: { 'server.js': server } });
  const process = await sandbox.spawn('node server.js');
  await process.waitForPort(3000);
  console.log('▸ the server is listening in the sandbox');

  const web = await sandbox.forward(3000);
  console.log(`▸ forwarded to ${web.url}`);
  for (const path of ['/', '/about']) {
    const page = await (await fetch(web.url + path)).json();
    console.log(`  GET ${path} → visit ${page.visits}, interfaces of the sandbox: ${page.network.join()}`);
  }

  const { chunks } = await process.read();
  console.log(
    chunks
      .map(({ text }) => text)
      .join('')
      .replace(/^(?=.)/gm, '  │ ')
      .trimEnd(),
  );

  await web.close();
  const closed = await fetch(web.url).catch(() => 'nobody answers');
  console.log(`▸ once the forward is closed, ${closed}`);
} finally {
  await manager.close();
}
