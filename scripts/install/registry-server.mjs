// The program of the throw-away registry. Its configuration comes as its only argument; it prints its port once it answers,
// and ends with its standard input.
//
//   node scripts/install/registry-server.mjs <the file of verdaccio> <configuration, as JSON>

import { pathToFileURL } from 'node:url';

const [verdaccio, configuration] = process.argv.slice(2);
const { runServer } = (await import(pathToFileURL(verdaccio).href)).default;
const server = await runServer(JSON.parse(configuration));
// Gone with whoever started it, however that ended.
process.stdin.on('end', () => process.exit()).resume();
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
